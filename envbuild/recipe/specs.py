"""conda match specs of a recipe, taken apart and written in one normal form."""

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from envbuild.recipe import words
from envbuild.recipe.model import Recipe

_KEYS: Final = ("version", "build", "build_number", "channel")
_LONGEST: Final = 1_000
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BRACKET: Final = re.compile(r"\s*([A-Za-z_0-9]+)\s*=\s*('[^']*'|\"[^\"]*\"|[^,\"'\]]+)\s*(?:,|$)")
_ONE_VERSION: Final = re.compile(
    r"(?:(?:==|!=|<=|>=|~=|=|<|>)?[A-Za-z0-9_.!+*-]*[A-Za-z0-9*][A-Za-z0-9_.!+*-]*)|\^[^|,]*\$"
)
_BUILD: Final = re.compile(r"[A-Za-z0-9_.*+-]+")
_NUMBER: Final = re.compile(r"(==|!=|<=|>=|=|<|>)?\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class CondaNeed:
    """One conda package that a recipe asks for.

    Attributes:
        text: The spec in normal form, as both solvers' match specs read it:
            `channel::name version build`.
        name: Package name, lower case.
        version: Version constraint, or None for any.
        build: Build string with globs, or None for any.
        build_number: Build number constraint, or None for any.
        channel: Channel as the recipe writes it, or None for any.
        written: The recipe's own text.
        path: Where it stands in the recipe.
    """

    text: str
    name: str
    version: str | None = None
    build: str | None = None
    build_number: str | None = None
    channel: str | None = None
    written: str = ""
    path: tuple[str | int, ...] = ()


def conda_needs(recipe: Recipe) -> tuple[CondaNeed, ...]:
    """Return what a checked recipe wants from conda, Python first; nothing on the host's Python."""
    needs = [parse(text, path=("conda", place)) for place, text in enumerate(recipe.conda)]
    if recipe.python is None or recipe.on_host_python:
        return tuple(needs)
    version = recipe.python
    if version[0].isdigit():
        version = f"{version}.*" if version.count(".") == 1 else version
    python = CondaNeed(
        text=f"python {version}",
        name="python",
        version=version,
        written=recipe.python,
        path=("python",),
    )
    return (python, *needs)


def parse(written: str, *, path: tuple[str | int, ...] = ()) -> CondaNeed:
    """Take a match spec apart.

    Understood are `channel::name version build`, `name=1.2=build`, `name>=1.2,<2`, and brackets
    (`name[version=..., build=..., channel=...]`); build strings may have dots.

    Raises:
        ValueError: It is not a match spec, or says the same thing twice; says what is wrong.
    """
    if len(written) > _LONGEST:
        message = f"longer than {_LONGEST:,} characters"
        raise ValueError(message)
    text, inside = _split_brackets(written.strip())
    parts = _bracket_parts(inside)
    channel, text = _split_channel(text)
    match = _NAME.match(text)
    if match is None or text.endswith((".conda", ".tar.bz2")):
        what = (
            "a path or an address cannot be locked" if "/" in text else "a package name is missing"
        )
        message = f"{what} in {written!r}"
        raise ValueError(message)
    version, build = _split_version(text[match.end() :])
    for key, value in (("channel", channel), ("version", version), ("build", build)):
        if value is not None and parts.setdefault(key, value) != value:
            message = f"{written!r} gives its {key} twice"
            raise ValueError(message)
    channel = parts.get("channel")
    need = CondaNeed(
        text="",
        name=match[0].lower(),
        version=_version(parts.get("version"), exact=parts.get("build") is not None),
        build=_checked(parts.get("build"), _BUILD, "build string"),
        build_number=_checked(parts.get("build_number"), _NUMBER, "build number"),
        channel=None if channel is None else words.channel(channel),
        written=written,
        path=path,
    )
    return _with_text(need)


def name_of(written: str) -> str | None:
    """Return the package name of a match spec, or None if it is not one."""
    try:
        return parse(written).name
    except ValueError:
        return None


def channel_of(written: str) -> str | None:
    """Return the channel of a match spec, or None if it has none or is not one."""
    try:
        return parse(written).channel
    except ValueError:
        return None


def _with_text(need: CondaNeed) -> CondaNeed:
    text = f"{need.channel}::{need.name}" if need.channel else need.name
    if need.version or need.build:
        text += f" {need.version or '*'}"
    if need.build:
        text += f" {need.build}"
    if need.build_number:
        text += f'[build_number="{need.build_number}"]'
    return replace(need, text=text)


def _split_brackets(text: str) -> tuple[str, str]:
    if "[" not in text:
        return text, ""
    before, _, inside = text.partition("[")
    if not inside.endswith("]") or "[" in inside:
        message = f"the brackets of {text!r} do not close at its end"
        raise ValueError(message)
    return before.strip(), inside[:-1].strip()


def _bracket_parts(inside: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    place = 0
    while place < len(inside):
        match = _BRACKET.match(inside, place)
        if match is None:
            message = f"expected key=value pairs between the brackets, found {inside[place:]!r}"
            raise ValueError(message)
        key, value = match[1], match[2].strip().strip("\"'").strip()
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, n=1)
            other = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(_KEYS)}"
            message = f"unknown key {key!r} between the brackets{other}"
            raise ValueError(message)
        if key in parts or not value:
            message = (
                f"the key {key!r} between the brackets {'stands twice' if value else 'is empty'}"
            )
            raise ValueError(message)
        parts[key] = value
        place = match.end()
    return parts


def _split_channel(text: str) -> tuple[str | None, str]:
    if "::" not in text:
        return None, text
    channel, _, rest = text.rpartition("::")
    return channel.strip(), rest.strip()


def _split_version(rest: str) -> tuple[str | None, str | None]:
    """Split what follows the name into version and build, by spaces or by `=`."""
    rest = re.sub(r"(?<=[=<>~!,|])\s+|\s+(?=[,|])", "", rest.strip())
    if not rest:
        return None, None
    fields = rest.split()
    if len(fields) == 1:
        match = re.fullmatch(r"=?=?([^=<>!~]+)=([^=<>!~]+)", rest)
        return (match[1], match[2]) if match else (rest, None)
    if len(fields) > 2:  # noqa: PLR2004 - a version and a build
        message = f"expected at most a version and a build after the name, found {rest!r}"
        raise ValueError(message)
    return fields[0], fields[1]


def _version(text: str | None, *, exact: bool) -> str | None:
    """Check a version constraint; `=1.2` without a build means any 1.2.x."""
    if text is None or text == "*":
        return None
    text = re.sub(r"\s+", "", text)
    if text.count("(") != text.count(")"):
        message = f"the parentheses of the version {text!r} do not close"
        raise ValueError(message)
    for one in re.split(r"[,|]", text.replace("(", "").replace(")", "")):
        if not _ONE_VERSION.fullmatch(one):
            message = f'expected a version such as "1.2.*" or ">=1.2,<2", found {text!r}'
            raise ValueError(message)
    if re.fullmatch(r"==[^,|*]+", text):
        return text[2:]
    fuzzy = re.fullmatch(r"=([^=,|*]+)", text)
    if fuzzy:
        return fuzzy[1] if exact else f"{fuzzy[1]}.*"
    return text


def _checked(text: str | None, pattern: re.Pattern[str], what: str) -> str | None:
    if text is None or text == "*":
        return None
    if not pattern.fullmatch(text):
        message = f"expected a {what}, found {text!r}"
        raise ValueError(message)
    return text
