"""One command with a share of a card, as a transient unit (systemd-run(1))."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envbuild import store
from envbuild.recipe.load import LoadedRecipe, loads
from envbuild.units import cards, names
from envbuild.units.model import Manager, Origin, UnitFile
from envbuild.units.render import Templates, render

FOLDER: Final = Path("run/systemd/system")
"""Units that are gone after a boot; one that systemd does not know yet needs no reload."""
_JOB: Final = "job"
_SHARED: Final = "_mps-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Transient:
    """What is to be run.

    Attributes:
        argv: The command that runs it.
        files: Units that it needs.
    """

    argv: tuple[str, ...]
    files: tuple[UnitFile, ...]


def transient(
    command: Sequence[str],
    gpu: Mapping[str, object],
    *,
    unit: str,
    user: str,
    folder: str,
    environment: Mapping[str, str],
    terminal: bool,
) -> Transient:
    """Return how a command is run with a share of a card.

    Args:
        command: Its words.
        gpu: What it gets, as `gpu:` of a recipe's service.
        unit: The name of its unit, with its suffix.
        user: Who it runs as.
        folder: Where it runs.
        environment: Variables that it gets.
        terminal: Whether it gets this terminal.

    Raises:
        RecipeError: What it would get cannot be.
    """
    loaded = _recipe(gpu, user)
    origin = Origin(
        name=loaded.recipe.name, prefix=sys.prefix, own=f"{Path(store.__file__).parent}"
    )
    own = cards.of_service(loaded.recipe, _JOB, origin) or {}
    files = [
        file
        for file in render(loaded, origin, Manager(), Templates())
        if file.shared or _SHARED in file.name
    ]
    needs = [file.name for file in files if file.name != names.PCIE]
    properties = [
        "DevicePolicy=closed",
        "DeviceAllow=/dev/nvidiactl rw",
        "DeviceAllow=char-nvidia-uvm rw",
        f"ExecStartPre={cards.for_transient(own['take'], unit)}",
        *([f"ExecStopPost={cards.for_transient(own['give'], unit)}"] if own["give"] else []),
        f"EnvironmentFile={cards.for_transient(cards.variables(), unit)}",
        *(f"{'BindsTo' if _SHARED in one else 'Requires'}={one}" for one in needs),
        *(f"After={one}" for one in needs),
        *([f"Wants={names.PCIE}"] if len(needs) < len(files) else []),
    ]
    variables = {**environment, **dict(_assigned(text) for text in own["environment"])}
    return Transient(
        argv=(
            *("systemd-run", "--quiet", "--collect", "--wait", "--pty" if terminal else "--pipe"),
            *(f"--unit={unit}", "--service-type=exec", f"--slice={names.PARENT_SLICE}"),
            *(f"--uid={user}", f"--working-directory={folder}"),
            *(f"--setenv={name}={value}" for name, value in variables.items()),
            *(word for each in properties for word in ("-p", each)),
            "--",
            *command,
        ),
        files=tuple(files),
    )


def missing(files: Sequence[UnitFile], root: Path = Path("/")) -> tuple[UnitFile, ...]:
    """Return the units that are neither installed nor there from an earlier run."""
    return tuple(
        file
        for file in files
        if not (root / "etc/systemd/system" / file.name).exists()
        and not (root / FOLDER / file.name).exists()
    )


def _recipe(gpu: Mapping[str, object], user: str) -> LoadedRecipe:
    """Return a recipe with one service that wants this, so that its units are a recipe's."""
    wish = "".join(f"      {key}: {value!r}\n" for key, value in gpu.items())
    text = f"name: run-{user}\nservices:\n  {_JOB}:\n    exec: [x]\n    user: {user}\n"
    return loads(f"{text}    gpu:\n{wish}      count: 1\n", source=f"run-{user}.yaml")


def _assigned(text: str) -> tuple[str, str]:
    """Return a variable and its value, of an assignment as units have it."""
    name, _, value = text.strip('"').partition("=")
    return name, value.replace("%%", "%")
