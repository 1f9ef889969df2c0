"""Which files count, and what they say where neither an option nor a variable does. A hot path.

A file's setting is told to the rest of envbuild as the variable that says the same, so there is
one way from a variable to what it does.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envbuild.config.keys import BY_NAME, Kind, Setting, Value, key_of
from envbuild.errors import InputError, UsageProblem

CONFIG_FILE = "ENVBUILD_CONFIG_FILE"
_ITEMS = {"mirrors": "ENVBUILD_CHANNEL_MIRRORS", "index": "ENVBUILD_INDEXES"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """What our configuration files say.

    Attributes:
        rows: Every setting, the one that counts most first.
        files: The files that were read, in the same order.
    """

    rows: tuple[Setting, ...] = ()
    files: tuple[Path, ...] = ()

    def paths(self, key: str) -> tuple[str, ...]:
        """Return the paths that a list names in all files."""
        values = (row.value for row in self.rows if row.key == key)
        return tuple(path for value in values if isinstance(value, tuple) for path in value)


def own_files(environ: Mapping[str, str], home: Path, *, root: Path = Path("/")) -> list[Path]:
    """Return our configuration files that are there, the one that counts most first.

    Args:
        environ: The variables.
        home: The user's home directory.
        root: Where `/etc` is.

    Raises:
        InputError: `ENVBUILD_CONFIG_FILE` names a file that is not there.
    """
    if told := environ.get(CONFIG_FILE):
        path = Path(told).absolute()
        if path.is_file() or told == os.devnull:
            return [path] if told != os.devnull else []
        message = f"{told}: there is no such configuration file"
        raise InputError(message, source=told, hint="see --config-file or ENVBUILD_CONFIG_FILE")
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else home / ".config"
    paths = [folder / "envbuild/config.toml", root / "etc/envbuild/config.toml"]
    return [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 - start-up time


def load(files: Sequence[Path], *, home: Path, lines: bool = False) -> Configuration:
    """Return what files say.

    Raises:
        InputError: One of them is wrong.
    """
    if not files:
        return Configuration()
    from envbuild.config.files import read

    rows = [row for path in files for row in read(path, home=home, lines=lines)]
    return Configuration(rows=tuple(rows), files=tuple(files))


def with_files(environ: Mapping[str, str], rows: Iterable[Setting]) -> dict[str, str]:
    """Return the variables with those that settings stand for, where they are not set already.

    Lists of folders take no part: they are looked at after the working directory's. Mirrors and
    indexes are told one by one; the last one of a name in a variable's text counts most.

    Args:
        environ: The variables; what they say stays.
        rows: Settings, the one that counts most first.
    """
    found = dict(environ)
    items: dict[str, dict[str, Value]] = {table: {} for table in _ITEMS}
    for row in rows:
        key = key_of(row.key)
        table, _, name = row.key.partition(".")
        if key is None or key.kind is Kind.PATHS:
            continue
        if key.name.endswith(".*"):
            items[table].setdefault(name, row.value)
        elif not any(found.get(variable) for variable in (key.variable, *key.also)):
            found[key.variable] = as_text(row.value)
    for table, values in items.items():
        variable = _ITEMS[table]
        told = environ.get(variable, "")
        named = {entry.partition("=")[0] for entry in told.split()}
        added = [
            f"{name}={url}"
            for name, value in reversed(values.items())
            if name not in named
            for url in (value if isinstance(value, tuple) else (value,))
        ]
        if added:
            found[variable] = " ".join([*added, told]).strip()
    return found


def as_text(value: Value) -> str:
    """Return a value as a variable has it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        return os.pathsep.join(value)
    return f"{value}"


def index_addresses(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what `ENVBUILD_INDEXES` says: name of a recipe's index to the address to use instead.

    Raises:
        UsageProblem: An entry is not `NAME=URL`.
    """
    variable = BY_NAME["index.*"].variable
    found: dict[str, str] = {}
    for entry in environ.get(variable, "").split():
        name, equals, url = entry.partition("=")
        if not (name and equals and url.startswith(("http://", "https://"))):
            message = f"{variable}: an entry is not NAME=URL with http or https"
            raise UsageProblem(message, hint="write corp=https://host/simple, one after a space")
        found[name] = url
    return found
