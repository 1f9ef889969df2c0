"""What the conda engine says when it fails, in our words and without logins."""

import re
from collections.abc import Mapping
from typing import Any

from envbuild.errors import FetchError, NoSolution, RecipeError
from envbuild.tools import addresses

_URL = re.compile(r"https?://[^\s'\")\]]+")


def one_line(text: str) -> str:
    """Return a text on one line, cut to a readable length."""
    return " ".join(text.split())[:300]


def solve_error(
    error: Mapping[str, Any], channels: set[str], places: addresses.Mirrors
) -> NoSolution | FetchError | RecipeError:
    """Return the error for a failed solve.

    Args:
        error: The worker's answer: `kind`, `text`, and what belongs to the kind.
        channels: The channels asked, as the recipe names them.
        places: Where they are read instead.
    """
    text = str(error["text"])
    if error["kind"] == "spec":
        return RecipeError(f"a conda spec cannot be read: {one_line(text)}")
    if error["kind"] == "fetch":
        return _fetch_error(text, channels, places)
    reason = text.removeprefix("Cannot solve the request because of: ").strip()
    notes = [note for row in error["names"] if (note := _left_out(row))]
    hint = "'no candidates' may also mean: excluded by another of its specs"
    if any(
        row["late"] and row["late"] + row["undated"] == row["matching"] for row in error["names"]
    ):
        hint = "the cutoff leaves out all that matches: it may have to move"
    return NoSolution(
        f"conda finds no solution for {error['platform']}",
        hint=f"change what the recipe asks for; {hint}",
        details="\n".join([reason, *notes]),
    )


def _left_out(row: Mapping[str, Any]) -> str | None:
    if row["offered"] and not row["matching"]:
        return f"{row['name']}: none of {row['offered']} records matches what is asked"
    parts = [
        f"{row[key]} {what}"
        for key, what in (("late", "not before the cutoff"), ("undated", "without an upload time"))
        if row[key]
    ]
    if not parts:
        return None
    return f"{row['name']}: of {row['matching']} records that match, {' and '.join(parts)}"


_REASONS = (
    ("no usable repodata cache", "it is not in the cache"),
    ("could not find subdir", "404 Not Found"),
    ("Connection refused", "connection refused"),
    ("dns error", "the host's name is unknown"),
    ("certificate", "the server's certificate is not trusted"),
    ("timed out", "no answer in time"),
    ("Connection reset", "the connection was reset"),
    ("unexpected EOF", "the answer was cut short"),
    ("end of file before message length", "the answer was cut short"),
    ("failed to parse repodata", "the answer is not a channel index (a login page, or cut short?)"),
    ("frame descriptor", "the answer is not a channel index (a login page?)"),
    ("deserialize", "the answer is not a channel index (a login page?)"),
    ("decode", "the answer is not a channel index (a login page?)"),
)


def _fetch_error(text: str, channels: set[str], places: addresses.Mirrors) -> FetchError:
    found = _URL.search(text)
    url = addresses.without_login(found[0]) if found else ""
    status = re.search(r"\((\d{3} [A-Z][A-Za-z ]+)\)", text)
    reason = next((words for mark, words in _REASONS if mark in text), None)
    if reason is None or (status and reason != "it is not in the cache"):
        reason = status[1] if status else one_line(text.splitlines()[-1])
    channel = _channel_of(url, channels, places)
    offline = reason == "it is not in the cache"
    return FetchError(
        f"channel {channel}: {reason}" + (f" ({url})" if url else ""),
        hint="run it once without --offline"
        if offline
        else "check the address, ENVBUILD_CHANNEL_MIRRORS and the proxy settings",
        details=without_logins(text),
    )


def without_logins(text: str) -> str:
    """Return a text of the engine's with the logins of all addresses taken out."""
    return _URL.sub(lambda found: addresses.without_login(found[0]), text)


def _channel_of(url: str, names: set[str], places: addresses.Mirrors) -> str:
    """Return the channel, as the recipe names it, that an address belongs to."""
    bases: dict[str, str] = {}
    for name in names:
        for place in places.places.get(name, ()):
            bases[place + "/"] = name
        bases.setdefault(name if "://" in name else f"/{name}/", name)
    fitting = [base for base in bases if (url.startswith(base) or base in url)]
    return bases[max(fitting, key=len)] if fitting else ", ".join(sorted(names))
