"""Every setting with the place that decides it, for a person who asks why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from envbuild.config.keys import KEYS, Key, Kind, Setting, Value

_COLORS = {"NO_COLOR": "never", "FORCE_COLOR": "always"}


def effective(
    options: Mapping[str, str], environ: Mapping[str, str], files: Sequence[Setting]
) -> tuple[Setting, ...]:
    """Return every setting as it counts, in the order of the keys; what is not set is empty.

    Args:
        options: What options say, key to value.
        environ: The variables.
        files: What files say, the one that counts most first.
    """
    found: list[Setting] = []
    for key in KEYS:
        if key.name.endswith(".*"):
            found += _named(key, environ, files)
            continue
        candidates = [
            *_option(key, options),
            *_variables(key, environ),
            *(row for row in files if row.key == key.name),
            Setting(key=key.name, value=key.default, source="default"),
        ]
        found.append(candidates[0] if key.kind is not Kind.PATHS else _joined(candidates))
    return tuple(found)


def _option(key: Key, options: Mapping[str, str]) -> Iterator[Setting]:
    if value := options.get(key.name):
        option = "locks" if key.name == "lockfiles" else key.name
        yield Setting(key=key.name, value=value, source=f"--{option}")


def _variables(key: Key, environ: Mapping[str, str]) -> Iterator[Setting]:
    for variable in (key.variable, *key.also):
        if value := environ.get(variable):
            told = _COLORS.get(variable, value)
            yield Setting(key=key.name, value=told, source=variable)


def _named(key: Key, environ: Mapping[str, str], files: Iterable[Setting]) -> list[Setting]:
    """Return the settings of one table whose names are free, sorted by name."""
    table = key.name.removesuffix("*")
    found: dict[str, Setting] = {}
    for entry in environ.get(key.variable, "").split():
        name, _, url = entry.partition("=")
        before = found.get(table + name)
        urls = (*(before.value if before and isinstance(before.value, tuple) else ()), url)
        value: Value = urls if key.kind is Kind.ADDRESSES else url
        found[table + name] = Setting(key=table + name, value=value, source=key.variable)
    fixed = {one.name for one in KEYS if not one.name.endswith(".*")}
    for row in files:
        if row.key.startswith(table) and row.key not in fixed:
            found.setdefault(row.key, row)
    return [found[name] for name in sorted(found)]


def _joined(candidates: Sequence[Setting]) -> Setting:
    """Return a list of folders from all places that name some; its origin is the first one's."""
    first = candidates[0]
    paths = [
        path
        for one in candidates
        if one.source != "default"
        for path in (one.value if isinstance(one.value, tuple) else str(one.value).split(":"))
    ]
    return (
        first
        if not paths
        else Setting(key=first.key, value=tuple(paths), source=first.source, line=first.line)
    )
