"""`envbuild create`: the environment of a lock; again: nothing to do."""

import os.path
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envbuild.cli import allowing, options, patience
from envbuild.cli.context import Here
from envbuild.store import noop
from envbuild.store.layout import Generation

if TYPE_CHECKING:
    from envbuild.store.create import Created


@options.command(
    "create",
    examples="""
    envbuild create quickstart
    envbuild create h100-pt24 --locked --no-switch
    envbuild create h100-pt24 --reinstall --compile
    """,
)
@options.recipe_argument
@click.option("--no-switch", is_flag=True, help="Do not make it current.")
@click.option("--reinstall", is_flag=True, help="Make another generation of the same lock.")
@options.locked_options
@options.offline_option
@click.option(
    "--compile/--no-compile",
    "compiled",
    default=None,
    help="Compile bytecode (default: in root's store).  [env: ENVBUILD_COMPILE]",
)
@options.python_option
@click.option(
    "--exclude-newer",
    metavar="WHEN",
    help="Where there is no lock: lock only what was uploaded before (2026-11-30, 14d).",
)
@allowing.allow_option
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def command(
    here: Here,
    name: str,
    *,
    no_switch: bool,
    reinstall: bool,
    compiled: bool | None,
    python: str | None,
    exclude_newer: str | None,
    as_json: bool,
) -> None:
    """Create the environment of a recipe's lock, check it, and make it current.

    Locks first where there is no lock. Where there is nothing to do, it does nothing. It asks for
    no GPU and restarts nothing.
    """
    file = noop.recipe_file(name, here.recipe_folders)
    folder = None if file is None else here.lock_folder(file.stem, recipe=file)
    found = None
    if file is not None and folder is not None and not (reinstall or here.frozen):
        found = _unchanged(here, file, folder, python)
    if found is not None and _show_unchanged(here, found, as_json=as_json):
        return
    began = time.monotonic()
    created = _create(
        here,
        name,
        folder,
        python=python,
        exclude_newer=exclude_newer,
        reinstall=reinstall,
        switch=not no_switch,
        compiled=here.compile_default if compiled is None else compiled,
    )
    _show(here, created, seconds=time.monotonic() - began, as_json=as_json)


def _unchanged(here: Here, file: Path, folder: Path, python: str | None) -> Generation | None:
    wanted = python or here.python
    return noop.unchanged(
        here.store.place(file.stem),
        recipe=file,
        locks=noop.lock_files(folder, here.platform),
        python=None if wanted is None else os.path.realpath(wanted),
        running=os.path.realpath(sys.executable),
        insisted=python is not None,
    )


def _create(
    here: Here,
    name: str,
    folder: Path | None,
    *,
    python: str | None,
    exclude_newer: str | None,
    reinstall: bool,
    switch: bool,
    compiled: bool,
) -> "Created":
    import gc

    from envbuild.cli import moved, progress
    from envbuild.pipeline.ask import Ask, Pythons
    from envbuild.pipeline.create import make_generation
    from envbuild.store.create import Options

    ask = Ask(
        name=name,
        recipe_folders=here.recipe_folders,
        lock_folder=folder,
        lock_output=here.lock_output,
        platform=here.platform,
        locked=here.locked,
        frozen=here.frozen,
        exclude_newer=exclude_newer,
        pythons=Pythons(
            option=python,
            variable=here.python,
            running=Path(sys.executable),
            search=here.environment.get("PATH", ""),
        ),
        facts=lambda: here.facts,
        allow=here.allow_option,
        options=Options(reinstall=reinstall, compiled=compiled, switch=switch, home=here.home),
    )
    gc.disable()  # 100,000 rows without a cycle among them would be searched for one
    try:
        with progress.shown(here) as shown:
            return make_generation(
                ask,
                store=here.store,
                access=here.access,
                progress=shown,
                who=moved.who(here),
                now=here.now(),
            )
    finally:
        gc.enable()


def _show_unchanged(here: Here, found: Generation, *, as_json: bool) -> bool:
    """Show what is there; return whether it still is: no lock is held."""
    if not as_json:
        click.echo(f"{found.place.name} is up to date ({found.identifier})")
        return True
    from envbuild.errors import StoreError
    from envbuild.store import manifest
    from envbuild.store.create import Created

    try:
        made = manifest.read(found)
    except StoreError:
        if found.manifest.exists():
            raise
        return False
    created = Created(
        generation=found,
        manifest=made,
        built=False,
        origin=found.identifier,
        current=True,
        findings=made.findings,
    )
    _show(here, created, seconds=0.0, as_json=True)
    return True


def _show(here: Here, created: "Created", *, seconds: float, as_json: bool) -> None:
    from envbuild.cli import output
    from envbuild.store import inventory

    manifest, name = created.manifest, created.generation.place.name
    generation = created.generation.identifier
    if as_json:
        output.print_json(
            {
                "name": name,
                "generation": generation,
                "prefix": manifest.prefix,
                "built": created.built,
                "current": created.current,
                "from": created.origin,
                "packages": len(manifest.packages),
                "files": manifest.file_count,
                "bytes": manifest.file_bytes,
                "seconds": round(seconds, 3),
                "findings": output.findings_json(created.findings),
            }
        )
        return
    output.print_findings(here, created.findings, err=True)
    size = output.bytes_text(manifest.file_bytes)
    what = "created" if created.built else "was there already"
    output.result(
        f"{name}: generation {generation} {what}"
        f" ({len(manifest.packages)} packages, {manifest.file_count} files, {size},"
        f" {output.duration_text(seconds)})"
    )
    if not created.current:
        output.result(f"{name}: {created.origin or 'nothing'} stays current")
        output.next_step(here, f"envbuild switch {name} {generation}")
        return
    if created.origin != generation:
        output.result(f"{name}: {created.origin or 'nothing'} -> {generation}")
    word = "run {} -- python" if inventory.python_version(manifest) else "shell {}"
    output.next_step(here, f"envbuild {word.format(name)}")
