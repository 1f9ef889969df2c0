"""`Environment`: what activation does to a process's environment, and `environment.json`.

Computed at creation (`store.activation`), applied whenever a command is run: a hot path.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION = 1
UNSET = ("PYTHONHOME", "PYTHONPATH")
"""Variables that always go: they would put another Python's modules before the generation's."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_variable(name: str) -> bool:
    """Tell whether a shell can set a variable of that name."""
    return _VARIABLE.fullmatch(name) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What activation does to an environment.

    Attributes:
        set: Variables that get a value.
        prepend: Variables that get entries in front of what they had, joined by `:`.
        unset: Variables that are removed.
    """

    set: Mapping[str, str] = field(default_factory=dict)
    prepend: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unset: tuple[str, ...] = UNSET

    def apply(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a process that is started in the generation."""
        result = {name: value for name, value in inherited.items() if name not in self.unset}
        result.update(self.set)
        for name, entries in self.prepend.items():
            before = result.get(name)
            result[name] = ":".join((*entries, before) if before else entries)
        return result


def dumps(environment: Environment) -> str:
    """Return the text of environment.json."""
    data = {
        "version": VERSION,
        "set": dict(sorted(environment.set.items())),
        "prepend": {name: list(entries) for name, entries in sorted(environment.prepend.items())},
        "unset": sorted(environment.unset),
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def loads(text: str | bytes) -> Environment:
    """Return what environment.json says.

    Raises:
        ValueError: It is not what we write.
    """
    try:
        return _environment(json.loads(text))
    except (KeyError, TypeError, AttributeError) as error:
        message = f"not an environment: {error}"
        raise ValueError(message) from error


def _environment(data: Any) -> Environment:  # noqa: ANN401 - what json gives
    if data["version"] != VERSION:
        raise ValueError(data["version"])
    prepend = {name: tuple(entries) for name, entries in data["prepend"].items()}
    names = [*data["set"], *prepend, *data["unset"]]
    texts = [*data["set"].values(), *(entry for entries in prepend.values() for entry in entries)]
    if not all(map(is_variable, names)) or any("\0" in text for text in texts):
        raise ValueError(names)
    unset = tuple(sorted({*UNSET, *data["unset"]}))
    return Environment(set=dict(data["set"]), prepend=prepend, unset=unset)
