"""`envbuild triangle`: which builds go with a card, a driver, CUDA, cuDNN and a Python, and why."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli import options, output, sets
from envbuild.cli.context import Here
from envbuild.errors import UsageProblem

if TYPE_CHECKING:
    from envbuild.compat.triangle import Judged

_STDOUT = "-"
_ALL = sets.gpu_option("several have to work all.")


@options.group(
    "triangle",
    examples="""
    envbuild triangle list --gpu h100 --framework 'pytorch>=2.3'
    envbuild triangle why --gpu b200 --framework pytorch==2.4.0
    envbuild triangle plot --output triangle.html
    """,
)
def command() -> None:
    """Say which frameworks, CUDA, drivers and cards go together, and why not."""


@command.command(
    "list",
    examples="""
    envbuild triangle list --gpu h100
    envbuild triangle list --gpu b200 --driver 570.133.20 --framework pytorch --json
    """,
)
@_ALL
@sets.set_options
@options.json_option
@click.pass_obj
def listed(here: Here, /, as_json: bool, **told: Any) -> None:  # noqa: ANN401, FBT001
    """List the builds that work, best first; exit code 1 where there is none."""
    from envbuild.compat.triangle import works

    facts = here.facts_of(*sets.TABLES)
    wanted = sets.wanted(facts, **told)
    found, cards = works(facts, wanted), bool(wanted.capabilities)
    if as_json:
        output.print_json({"sets": [_json(each, cards=cards) for each in found]})
    elif found:
        headings = ("BUILD", "CUDA", "CUDNN", "DRIVER", "PYTHON", "CODE", "FROM")
        rows = [_row(each, cards=cards) for each in found]
        output.result(output.table(headings, rows, width=shutil.get_terminal_size().columns))
    else:
        output.say(here, "no build works with all of this")
        output.next_step(here, f"envbuild triangle why {sets.typed(**told)}")
    if not found:
        click.get_current_context().exit(1)


@command.command(
    "why",
    examples="""
    envbuild triangle why --gpu b200 --framework pytorch==2.4.0
    envbuild triangle why --gpu h100 --driver 550 --framework 'pytorch>=2.11'
    """,
)
@_ALL
@sets.set_options
@options.json_option
@click.pass_obj
def why(here: Here, /, as_json: bool, **told: Any) -> None:  # noqa: ANN401, FBT001
    """Say whether a full or partial set works, or every reason against it; exit code 0 or 1."""
    from envbuild.cli import against
    from envbuild.compat import triangle
    from envbuild.compat.nearest import nearest
    from envbuild.compat.sentences import place

    facts = here.facts_of(*sets.TABLES)
    wanted = sets.wanted(facts, **told)
    found, cards = triangle.works(facts, wanted), bool(wanted.capabilities)
    meant = [each for each in triangle.judged(facts, wanted) if _is_asked(each)]
    near = [] if found else nearest(facts, wanted)
    first = None if found or not wanted.capabilities else triangle.first_with_code(facts, wanted)
    if as_json:
        data = {
            "works": bool(found),
            "sets": [_json(each, cards=cards) for each in found],
            "against": [] if found else [_json(each, cards=cards) for each in meant],
            "nearest": [_json(each, cards=cards) for each in near],
            "first_with_code": None if first is None else _json(first, cards=cards),
        }
        output.print_json(data)
    elif found:
        output.result("\n".join(["works:", *(f"  {place(each.build)}" for each in found)]))
    else:
        output.result("\n".join(against.lines(meant, near, first)))
    if not found:
        click.get_current_context().exit(1)


@command.command(
    "plot",
    examples="""
    envbuild triangle plot --output triangle.html
    envbuild triangle plot --gpu h100 --gpu b200 --framework 'pytorch>=2.4' --output pytorch.svg
    envbuild triangle plot --driver 550 --html > old-driver.html
    """,
)
@sets.gpu_option("one column each. Without it: all that cards have.")
@sets.set_options
@click.option("--html", "as_html", is_flag=True, help="A page of HTML instead of SVG.")
@click.option(
    "-o",
    "--output",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write FILE.svg or FILE.html; without it, or with -, it is printed.",
)
@click.pass_obj
def plot(here: Here, /, *, as_html: bool, file: str | None, **told: Any) -> None:  # noqa: ANN401
    """Draw releases and their CUDA against cards, as SVG or HTML for a wiki; exit code 0 or 1.

    A cell is what `triangle list` says: the oldest driver, or what does not do; pointing at it
    shows every reason with its source. Releases and CUDA that are not meant have no row.
    """
    from envbuild.compat import grid, plot

    as_html = _is_html(file, as_html=as_html)
    facts = here.facts_of(*sets.TABLES)
    wanted = sets.wanted(facts, **told)
    columns = [sets.column(facts, gpu) for gpu in dict.fromkeys(told["gpus"])]
    drawn = grid.grid(facts, wanted, columns or grid.all_columns(facts))
    if not drawn.lines:
        output.say(here, "there is no build of this to draw")
        click.get_current_context().exit(1)
    again = " ".join(filter(None, ("envbuild triangle plot", sets.typed(**told))))
    text = (plot.html if as_html else plot.svg)(drawn, command=again)
    if file is None or file == _STDOUT:
        output.result(text.rstrip())
        return
    output.write_file(Path(file), text)
    output.say(here, f"wrote {file}: {len(drawn.lines)} rows, {len(drawn.columns)} columns")


def _is_html(file: str | None, *, as_html: bool) -> bool:
    """Say whether HTML is wanted, by the option or the file's name.

    Raises:
        UsageProblem: The name says neither, or something else than the option.
    """
    if file is None or file == _STDOUT:
        return as_html
    suffix = Path(file).suffix.lower()
    if suffix in {".html", ".htm"} or (suffix == ".svg" and not as_html):
        return suffix != ".svg"
    what = f"{file} ends in {suffix}" if suffix else f"{file} has no suffix"
    message = f"--output: {what}, which is neither .svg nor .html"
    if suffix == ".svg":
        message = f"--html: {file} ends in .svg"
    raise UsageProblem(message, hint="name a file such as triangle.html")


def _is_asked(each: "Judged") -> bool:
    """Say whether a build is one of the versions that were asked for."""
    return "framework" not in each.parts


def _row(each: "Judged", *, cards: bool) -> tuple[str, ...]:
    from envbuild.cli.against import pythons

    build = each.build
    answers = {"native": "native", "jit": "by JIT", "unknown": "unknown"}
    origin = f"jax[{build.origin}]" if build.framework == "jax" else build.origin
    if build.build_string:
        origin = f"conda {build.origin}, {build.build_string}"
    return (
        f"{build.framework} {build.version}",
        build.cuda or f"{build.cuda_major}.x",
        _within_major(build.cudnn or "-"),
        each.drivers.replace(" to ", "-"),
        pythons(build).replace(" to ", "-"),
        answers[each.answer] if cards else "-",
        f"{origin} (own facts)" if build.site else origin,
    )


def _within_major(versions: str) -> str:
    """Return a range without its end where that is the next major version, as for all of cuDNN."""
    parts = versions.split(",")
    begin = next((one for one in parts if one.startswith(">=")), "")
    found = re.match(r">=(\d+)", begin)
    ends = {f"<{int(found[1]) + 1}", f"<{int(found[1]) + 1}.0"} if found else set()
    return begin if {*parts} - {begin} <= ends and begin else versions


def _json(each: "Judged", *, cards: bool) -> dict[str, object]:
    build = each.build
    return {
        "framework": build.framework,
        "version": build.version,
        "origin": build.origin,
        "conda_build": build.build_string,
        "platform": build.platform,
        "cuda": build.cuda,
        "cuda_major": build.cuda_major,
        "cudnn": build.cudnn,
        "driver": each.driver,
        "last_driver_branch": each.last,
        "pythons": list(build.pythons),
        "gpu_code": each.answer if cards else None,
        "confidence": build.confidence,
        "site": build.site or None,
        "sources": list(build.sources),
        "reasons": [
            {"part": reason.part, "what": reason.what, "sources": list(reason.sources)}
            for reason in each.reasons
        ],
    }
