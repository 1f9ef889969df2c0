"""`envbuild status`: do environments answer their recipes and locks?"""

import click

from envbuild.cli import options, output, whose
from envbuild.cli.context import Here
from envbuild.findings import errors_of
from envbuild.pipeline.status import Status, status
from envbuild.store import present


@options.command(
    "status",
    examples="""
    envbuild status
    envbuild status h100-pt24 --json
    """,
)
@options.environment_argument(required=False)
@options.json_option
@click.pass_obj
def command(here: Here, name: str | None, *, as_json: bool) -> int:
    """Say whether environments are what their recipes and locks say now, and who uses them.

    Exit code 0: they are; 1: one is not. Nothing is solved and no network is used.
    """
    names = present.names(here.store) if name is None else (name,)
    places = [present.found(here.stores, each) for each in names]
    for place in places:
        whose.say(here, place)
    found = [
        status(
            place,
            recipe_folders=here.recipe_folders,
            find_lock=lambda recipe, file: here.lock_folder(recipe, recipe=file),
            platform=here.platform,
        )
        for place in places
    ]
    if as_json:
        output.print_json({"environments": [_data(each) for each in found]})
        return 1 if any(errors_of(each.findings) for each in found) else 0
    for each in found:
        output.result(_text(each))
    code = output.print_findings(here, [one for each in found for one in each.findings])
    if name is not None and not code:
        output.next_step(here, f"envbuild shell {name}")
    return code


def _text(found: Status) -> str:
    if errors_of(found.findings):
        state = "is not what recipe and lock say"
    elif found.wanted is None:
        state = "has no recipe and lock to compare with"
    elif found.findings:
        state = "stands, with remarks"
    else:
        state = "is what recipe and lock say"
    lines = [f"{found.name}: {found.current or 'the current generation'} {state}"]
    for identifier, users in found.running:
        named = ", ".join(f"{user.pid} ({user.name})" for user in users)
        lines.append(f"  running in {identifier}: {named}")
    return "\n".join(lines)


def _data(found: Status) -> dict[str, object]:
    return {
        "name": found.name,
        "current": found.current,
        "wanted": found.wanted,
        "running": {
            identifier: [{"pid": user.pid, "name": user.name, "how": user.how} for user in users]
            for identifier, users in found.running
        },
        "findings": output.findings_json(found.findings),
    }
