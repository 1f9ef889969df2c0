"""`envbuild doctor`: what this host is, and whether it can run an environment."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envbuild.cli import complete, options, output
from envbuild.cli.context import Here
from envbuild.errors import InputError
from envbuild.findings import errors_of

if TYPE_CHECKING:
    from envbuild.compat.model import Facts
    from envbuild.host.difference import Difference
    from envbuild.host.machine import Host
    from envbuild.pipeline.doctor import Locked, Looked

_FOLDER = click.Path(exists=True, file_okay=False)
_TABLES = ("cuda", "gpus", "xids")
_OF_FRAMEWORKS = ("pytorch", "jax")
_SYSTEM = Path("/")


@options.command(
    "doctor",
    examples="""
    envbuild doctor
    envbuild doctor h100-pt24 --json
    envbuild doctor --save before.json
    envbuild doctor --diff before.json
    """,
)
@click.argument("name", required=False, shell_complete=complete.both)
@click.option(
    "--save",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Also write what was seen into a file, for --diff.",
)
@click.option(
    "--diff",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Show how this host differs from a saved one, and nothing else.",
)
@click.option(
    "--driver-root",
    metavar="DIR",
    type=_FOLDER,
    help="Look for the driver's files below DIR, where a container has them (/run/nvidia/driver).",
)
@click.option(
    "--root",
    metavar="DIR",
    type=_FOLDER,
    help="Look at the host whose root is DIR, such as /host in a container.",
)
@options.json_option
@click.pass_obj
def command(
    here: Here,
    name: str | None,
    save: str | None,
    diff: str | None,
    driver_root: str | None,
    root: str | None,
    *,
    as_json: bool,
) -> int:
    """Say what this host is, and whether it can run an environment.

    Driver, cards, bus, kernel log and system are read, nothing is changed. With NAME, what the
    environment (else its lock) needs is held against this host.

    Exit code 0: nothing is in the way; a host without a card is one too. 1: something is, or NAME
    is refused; with --diff: something differs that matters.
    """
    from envbuild.pipeline.doctor import look

    before = _saved(diff)
    locked = None if name is None else _locked(here, name)
    host = _host(here, driver_root, root)
    facts = here.facts_of(*_TABLES)
    looked = look(host, facts, today=here.now().date(), locked=locked)
    if save is not None:
        data = {"version": 1, **_data(looked)}
        text = json.dumps(data, indent=2, ensure_ascii=False)
        output.write_file(Path(save), text + "\n")
    if before is not None:
        return _show_difference(here, before, looked, as_json=as_json)
    if as_json:
        output.print_json(_data(looked))
        return 1 if errors_of(looked.findings) else 0
    return _show(here, looked)


def _saved(path: str | None) -> "Host | None":
    """Return the host of a file.

    Raises:
        InputError: It cannot be read, or is no such file.
    """
    from envbuild.pipeline.doctor import saved

    if path is None:
        return None
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        hint = "envbuild doctor --save FILE writes one"
        raise InputError(message, source=path, hint=hint) from error
    return saved(text, source=path)


def _locked(here: Here, name: str) -> "Locked":
    """Return what an environment needs, of its generation, else of its lock."""
    from envbuild.pipeline.locked import created, from_lock

    def facts() -> "Facts":
        return here.facts_of(*_TABLES, *_OF_FRAMEWORKS)

    if "/" not in name and not name.endswith(".yaml"):
        found = created(here.stores, name, facts)
        if found is not None:
            return found
    path = Path(name)
    folders = here.recipe_folders
    if path.suffix == ".yaml" or "/" in name:
        name, folders = path.stem, (path.parent, *folders)
    return from_lock(
        name,
        folders,
        lambda own, recipe: here.lock_folder(own, recipe=recipe),
        here.platform,
        facts(),
    )


def _host(here: Here, driver_root: str | None, root: str | None) -> "Host":
    from envbuild.host.gpus import read_nvml
    from envbuild.host.probe import Where, probe

    base = _SYSTEM if root is None else Path(root).absolute()
    own = None if driver_root is None else Path(driver_root).absolute()
    elsewhere = own or (None if base == _SYSTEM else base)
    name = here.host
    if base != _SYSTEM:
        with suppress(OSError):
            name = (base / "proc/sys/kernel/hostname").read_text().strip() or name
    where = Where(
        root=base, driver_root=own, store=here.store.root, variables=dict(here.environment)
    )
    taken = output.time_text(here.now())
    return probe(where, ask=lambda: read_nvml(elsewhere), name=name, taken=taken)


def _data(looked: "Looked") -> dict[str, object]:
    import msgspec

    locked = looked.locked
    environment = {
        "name": locked.name,
        "from": locked.origin,
        "needs": msgspec.to_builtins(locked.needs),
        "admitted": looked.admitted,
    } if locked else None  # fmt: skip
    return {
        "host": msgspec.to_builtins(looked.host),
        "environment": environment,
        "findings": output.findings_json(looked.findings),
    }


def _show(here: Here, looked: "Looked") -> int:
    from envbuild.cli import host_text

    if not here.quiet:
        output.result(host_text.text(looked.host))
        if looked.locked is not None:
            found = host_text.here_of(looked.host)
            if looked.locked.libraries is not None:
                found["disk"] = "already here"
            output.result(f"\n{looked.locked.name}, from {looked.locked.origin}:")
            output.result(host_text.needs_text(looked.locked.needs, found))
        output.result("")
    code = output.print_findings(here, looked.findings)
    if looked.locked is not None:
        answer = "may run here" if looked.admitted else "may not run here"
        output.result(f"{looked.locked.name}: {answer}")
    elif not looked.findings and not here.quiet:
        output.result("nothing is in the way")
    return code


def _show_difference(here: Here, before: "Host", looked: "Looked", *, as_json: bool) -> int:
    from envbuild.host.difference import compare

    found = compare(before, looked.host)
    matter = [one for one in found if one.matters]
    if as_json:
        rows = [
            {"what": one.what, "before": one.before, "now": one.now, "matters": one.matters}
            for one in found
        ]
        output.print_json({**_data(looked), "differences": rows})
    elif not here.quiet:
        output.result(_differences(before, looked.host, found))
    return 1 if matter else 0


def _differences(before: "Host", now: "Host", found: "Sequence[Difference]") -> str:
    old, new = f"{before.name} {before.taken}", f"{now.name} {now.taken}"
    if not found:
        return f"nothing differs between {old} and {new}"
    rows = [(one.what, _short(one.before), _short(one.now)) for one in found]
    return output.table(("WHAT", old, new), rows)


def _short(text: str) -> str:
    most = 48
    return text if len(text) <= most else f"{text[: most - 1]}…"
