"""`envbuild verify`: compare every installed file with its digest, and make it anew if need be."""

from typing import TYPE_CHECKING

import click

from envbuild.cli import options, output, patience, progress, whose
from envbuild.cli.context import Here
from envbuild.findings import Findings, errors_of
from envbuild.store import manifest, present, use, verify
from envbuild.store.layout import Generation

if TYPE_CHECKING:
    from envbuild.pipeline.repair import Repair

_MOVED = "generation-moved"


@options.command(
    "verify",
    examples="""
    envbuild verify h100-pt24
    envbuild verify h100-pt24 --generation 3f9a --json
    envbuild verify h100-pt24 --repair
    """,
)
@options.generation_option
@options.environment_argument()
@click.option(
    "--repair",
    "--fix",
    "repairs",
    is_flag=True,
    help="Where it differs: make the generation anew, as ID-2, ID-3 …",
)
@options.dry_run_option
@options.offline_option
@options.json_option
@patience.lock_timeout_option
@click.pass_obj
def command(
    here: Here,
    name: str,
    generation: str | None,
    *,
    repairs: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Compare every installed file with its digest; every difference is named.

    Exit code 0: as it was installed; 1: it differs. With --repair a generation that differs is
    made anew of what it was made from, under the next ID, and becomes current where the damaged
    one was, which stays as it is; exit code 0 then means that all is well now.
    """
    if repairs:
        place = present.own(here.stores, name, command="verify --repair")
    else:
        place = present.found(here.stores, name)
        whose.say(here, place)
    kept = use.kept(place, generation)
    chosen = kept.generation
    if repairs:
        return _repair(here, chosen, dry_run=dry_run, as_json=as_json)
    if dry_run:
        message = "--dry-run belongs to --repair"
        raise click.UsageError(message)
    with progress.shown(here) as shown:
        findings = verify.verify(chosen, progress=shown)
    if as_json:
        output.print_json(_data(chosen, findings))
        return 1 if errors_of(findings) else 0
    code = output.print_findings(here, findings)
    if code:
        output.next_step(here, _remedy(name, findings))
    else:
        _say_whole(chosen)
    return code


def _remedy(name: str, findings: Findings) -> str:
    """Return the command that puts it right."""
    if all(finding.code == _MOVED for finding in errors_of(findings)):
        return f"envbuild store relink {name}"
    return f"envbuild verify {name} --repair"


def _say_whole(chosen: Generation) -> None:
    made = manifest.read(chosen)
    size = output.bytes_text(made.file_bytes)
    text = f"{made.name}: {made.file_count} files ({size}) are as they were installed"
    output.result(f"{text}, generation {chosen.identifier}")


def _data(chosen: Generation, findings: Findings) -> dict[str, object]:
    made = manifest.read(chosen)
    return {
        "name": made.name,
        "store": str(chosen.place.store.root),
        "generation": chosen.identifier,
        "files": made.file_count,
        "bytes": made.file_bytes,
        "findings": output.findings_json(findings),
    }


def _repair(here: Here, chosen: Generation, *, dry_run: bool, as_json: bool) -> int:
    from envbuild.cli import moved
    from envbuild.pipeline import repair

    with progress.shown(here) as shown:
        if dry_run:
            done = repair.Repair(findings=verify.examine(chosen, progress=shown))
            if errors_of(done.findings):
                repair.kept_order(chosen)
        else:
            done = repair.repair(
                chosen,
                home=here.home,
                access=here.access,
                progress=shown,
                who=moved.who(here),
                now=here.now(),
            )
    if as_json:
        output.print_json(_repair_data(chosen, done, dry_run=dry_run))
    else:
        _show_repair(here, chosen, done, dry_run=dry_run)
    return 0


def _repair_data(chosen: Generation, done: "Repair", *, dry_run: bool) -> dict[str, object]:
    made = done.created
    return {
        "name": chosen.place.name,
        "generation": chosen.identifier,
        "dry_run": dry_run,
        "damaged": bool(errors_of(done.findings)),
        "repaired": made.generation.identifier if made else None,
        "current": made.current if made else None,
        "findings": output.findings_json(done.findings),
        "notes": output.findings_json(made.findings) if made else [],
    }


def _show_repair(here: Here, chosen: Generation, done: "Repair", *, dry_run: bool) -> None:
    output.print_findings(here, done.findings, err=True)
    name = chosen.place.name
    if not errors_of(done.findings):
        _say_whole(chosen)
    elif dry_run:
        output.result(f"{name}: generation {chosen.identifier} would be made anew")
    elif done.created is not None:
        new = done.created.generation.identifier
        output.result(f"{name}: generation {new} made in place of {chosen.identifier}")
        if done.created.current:
            output.result(f"{name}: {chosen.identifier} -> {new}")
        else:
            output.result(f"{name}: {done.created.origin or 'nothing'} stays current")
