"""`envbuild new`: write a commented recipe, from answers, options or another tool's file."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here

if TYPE_CHECKING:
    from pathlib import Path

    from envbuild.findings import Findings
    from envbuild.recipe.draft import Draft

_FIELDS = (
    "python", "framework", "gpus", "cuda", "channels", "conda", "pypi", "platforms",
)  # fmt: skip
_OWN_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_EXAMPLES = """
envbuild new train --python 3.11 --framework pytorch==2.4.0 --gpu h100 --cuda 12.4
envbuild new tools --host --pypi "ruff >=0.12"
envbuild new old --from environment.yml
envbuild new old --from /opt/conda/envs/train
"""


def _checked(check: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback that passes a value through a function of `recipe.words`."""

    def callback(_: click.Context, __: click.Parameter, value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, tuple):
            return tuple(_pass(check, one) for one in value)
        return None if value is None else _pass(check, value)

    return callback


def _pass(check: str, text: str) -> str:
    from envbuild.recipe import requirements, specs, words

    try:
        if check == "conda":
            return specs.parse(text).text
        if check == "pypi":
            requirements.parse(text)
            return text
        passed: str = getattr(words, check)(text.strip())
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return passed


@options.command("new", examples=_EXAMPLES)
@click.argument("name", callback=_checked("name"))
@click.option("--host", is_flag=True, help="Take this machine's Python; no conda channel needed.")
@click.option(
    "--python", metavar="VERSION", callback=_checked("python"), help="Such as 3.11 or >=3.11,<3.14."
)
@click.option(
    "--framework",
    metavar="NAME==VERSION",
    callback=_checked("framework"),
    help="pytorch, jax or tensorflow, with or without a version; from PyPI.",
)
@click.option(
    "--gpu", "gpus", metavar="NAME", multiple=True, callback=_checked("gpu"), help="Such as h100."
)
@click.option("--cuda", metavar="VERSION", callback=_checked("version"), help="Such as 12.4.")
@click.option(
    "--channel",
    "channels",
    metavar="NAME",
    multiple=True,
    callback=_checked("channel"),
    help="A conda channel; the first has the highest priority.",
)
@click.option(
    "--conda", metavar="SPEC", multiple=True, callback=_checked("conda"), help="A conda package."
)
@click.option(
    "--pypi", metavar="REQ", multiple=True, callback=_checked("pypi"), help="A PyPI requirement."
)
@click.option(
    "--from",
    "origin",
    metavar="PATH",
    type=click.Path(exists=True),
    help="Take over a conda environment.yml, a requirements.txt, or a living conda environment or"
    " venv by its folder.",
)
@click.option("--force", is_flag=True, help="Overwrite a recipe of that name.")
@options.platform_option
@click.pass_obj
def command(here: Here, /, name: str, force: bool, **told: Any) -> None:  # noqa: ANN401, FBT001
    """Write recipes/NAME.yaml, commented, such that it locks as it is.

    On a terminal it asks what no option says; elsewhere options are enough.
    """
    path = _free_place(here, name, force=force)
    if not any(told.values()) and sys.stdin.isatty() and sys.stdout.isatty():
        told |= ask()
    draft, notes, findings = _draft(here, name, told)
    _write(path, draft)
    output.print_findings(here, findings, err=True)
    for note in notes:
        output.say(here, f"note: {note}")
    output.result(str(path))
    output.next_step(here, f"envbuild lock {name}")


def ask() -> dict[str, Any]:
    """Ask on the terminal what the recipe is to hold; return what the options would be."""
    from envbuild.recipe.draft import DEFAULT_PYTHON

    kind = click.prompt(
        "Python from conda, or this machine's own (host)",
        type=click.Choice(["conda", "host"]),
        default="conda",
    )
    host = kind == "host"
    answers: dict[str, Any] = {"host": host}
    answers["python"] = _prompt(
        "Python version", "python", default=_OWN_PYTHON if host else DEFAULT_PYTHON
    )
    framework = _prompt("Framework, such as pytorch==2.4.0 (none: Enter)", "framework")
    answers["framework"] = framework or None
    gpu = _prompt("GPU, such as h100 (none: Enter)", "gpu")
    answers["gpus"] = (gpu,) if gpu else ()
    if gpu:
        answers["cuda"] = _prompt("CUDA version, such as 12.4 (none: Enter)", "version") or None
    return answers


def _prompt(question: str, check: str, default: str = "") -> str:
    def convert(text: str) -> str:
        return _pass(check, text) if text else ""

    answer: str = click.prompt(
        question, default=default, show_default=bool(default), value_proc=convert
    )
    return answer


def _free_place(here: Here, name: str, *, force: bool) -> "Path":
    """Return where the recipe goes: `--recipes`, `ENVBUILD_RECIPES`, else ./recipes.

    Raises:
        UsageProblem: There is one already.
    """
    from envbuild.errors import UsageProblem

    path = here.recipe_folders[0] / f"{name}.yaml"
    if path.exists() and not force:
        message = f"{path} is there already"
        raise UsageProblem(message, hint="--force overwrites it")
    return path


def _draft(here: Here, name: str, told: dict[str, Any]) -> "tuple[Draft, list[str], Findings]":
    """Return what the recipe is to say, what to tell about it, and what it does not carry."""
    from envbuild.errors import HostError
    from envbuild.recipe.draft import Draft, moved_over, taken_over

    draft = Draft(name=name)
    notes: list[str] = []
    try:
        draft = replace(draft, platforms=(here.platform,))
    except HostError:
        notes.append(f"this machine is no platform of envbuild; {draft.platforms[0]} is written")
    findings: Findings = ()
    if told["origin"]:
        from pathlib import Path

        from envbuild.recipe import foreign, living

        origin = Path(told["origin"])
        if origin.is_dir():
            found = living.load(origin.absolute())
            draft = moved_over(draft, found, origin=f"{origin.absolute()}")
            findings = tuple(found.findings)
            notes += [f"{origin}: all packages are pinned: what was asked for is not known"] * (
                bool(found.conda) and not found.asked
            )
        else:
            file = foreign.load(origin)
            draft = taken_over(draft, file, origin=origin.name)
            notes += file.notes
    if told["host"]:
        draft = replace(draft, host=True, channels=("host",), python=_OWN_PYTHON)
    told["conda"] = (*draft.conda, *told["conda"])
    told["pypi"] = (*draft.pypi, *told["pypi"])
    told_fields = {key: told[key] for key in _FIELDS if told.get(key)}
    return replace(draft, **told_fields), notes, findings


def _write(path: "Path", draft: "Draft") -> None:
    """Write the recipe, once it is known that it can be read.

    Raises:
        UsageProblem: What was asked for does not make a recipe; says why.
    """
    from envbuild.errors import RecipeError, UsageProblem
    from envbuild.recipe.draft import write
    from envbuild.recipe.load import loads
    from envbuild.tools.files import write_atomic

    text = write(draft)
    try:
        loads(text, source=str(path))
    except RecipeError as error:
        message = "what was asked for does not make a recipe; nothing was written"
        raise UsageProblem(message, details=error.details or error.message) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text)
