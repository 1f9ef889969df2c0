"""What a failure of uv means: its text never reaches a user with a login or an address in it."""

import contextlib
import re
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from envbuild.errors import EnvbuildError, FetchError, NoSolution, ToolFailed
from envbuild.tools.run import Completed
from envbuild.tools.uv_question import Source

_NO_INDEX = "{} cannot be reached, or does not answer as an index"
_NO_DATE = re.compile(r"^warning: `([^`]+)` is missing an upload date", re.MULTILINE)
_FETCH = (
    (
        re.compile(r"hash mismatch", re.IGNORECASE),
        "a wheel from {} has another hash than the lock",
        "do not use that index until you know why",
    ),
    (
        re.compile(r"Failed to extract|zip file|end of central directory", re.IGNORECASE),
        "a wheel from {} is damaged",
        "try again, then ask whoever runs that index",
    ),
    (
        re.compile(r"network was disabled|Network connectivity is disabled"),
        "something is not in the cache, and --offline forbids to fetch it",
        "run it once without --offline",
    ),
    (
        re.compile(r"\b40[13] (?:Forbidden|Unauthorized)"),
        "{} refuses access",
        "check the login of that index",
    ),
    (
        re.compile(
            r"Failed to (?:fetch|download|query)|Request failed|error sending request"
            r"|operation timed out|status (?:client|server) error|Missing `Content-Type`"
            r"|Unsupported `Content-Type`|Received some unexpected",
            re.IGNORECASE,
        ),
        _NO_INDEX,
        "check address, proxy and certificates",
    ),
)
"""What in uv's text speaks of a fetch, our message for it, and what to do; first match counts."""

_REASONS = (
    ("operation timed out", "no answer in time"),
    ("Connection reset", "the connection was reset"),
    ("before message length", "the answer was cut short"),
    ("unexpected EOF", "the answer was cut short"),
    ("Connection refused", "connection refused"),
    ("dns error", "the host's name is unknown"),
    ("certificate", "the server's certificate is not trusted"),
    ("unsuccessful tunnel", "the proxy refuses"),
    ("`Content-Type`", "the answer is no index page (of a login?)"),
    ("Received some unexpected", "the answer is no index page (cut short, or of a login?)"),
)
"""What uv's causes say of the network, and our words for it."""

_PACKAGE = re.compile(r"`([A-Za-z0-9._-]+==[^`\s]+)`|([A-Za-z0-9._+-]+\.whl)")
_STATUS = re.compile(r"\b([45]\d\d [A-Z][A-Za-z ]+)")

_HEAD = re.compile(r"\Aerror: No solution found[^\n]*\n\s*cause: ")
_NO_BUILD = (
    "building from source is disabled for all packages (i.e., with `--no-build`)",
    "envbuild takes wheels only",
)
"""What uv says of its own command line: no user typed it."""

_UNKNOWN = "see whether the name is right, and whether its index is the one that is meant"

_URL = re.compile(r"https?://[^\s`'\")\]]+")


class Undated(NoSolution):
    """An index gives no upload times, and a cutoff was asked for.

    Attributes:
        files: Names of the files without one.
    """

    def __init__(self, files: Sequence[str], *, details: str) -> None:
        """Keep the files; who knows the indexes says which one it was."""
        super().__init__("an index gives no upload times", details=details)
        self.files = tuple(files)


def undated_files(text: str) -> tuple[str, ...]:
    """Return the files that uv left out because they have no upload time."""
    return tuple(sorted(set(_NO_DATE.findall(text))))


def failure(done: Completed, sources: Sequence[Source]) -> EnvbuildError:
    """Return our error for a failure of uv; its text never holds a login."""
    details = _clean(done.stderr, sources)
    where = _blamed(done.stderr, sources)
    for pattern, message, hint in _FETCH:
        if pattern.search(done.stderr):
            reason = _reason(done.stderr) if message == _NO_INDEX else None
            text = f"{where} cannot be reached: {reason}" if reason else message.format(where)
            if package := _PACKAGE.search(details):
                text += f" ({package[1] or package[2]})"
            return FetchError(text, hint=hint, details=details)
    if done.status == 1 and "No solution found" in done.stderr:
        unknown = "was not found in the package registry" in details
        details = _HEAD.sub("", details).replace(*_NO_BUILD)
        return NoSolution(
            "the PyPI half cannot be solved",
            hint=_UNKNOWN if unknown else None,
            details=details,
        )
    message = f"uv failed with exit status {done.status}"
    return ToolFailed(message, argv=done.argv, status=done.status, details=details)


def _reason(text: str) -> str | None:
    """Return what is wrong with the network in a few words, None if uv's text does not tell."""
    if status := _STATUS.search(text):
        return status[1].strip()
    return next((words for mark, words in _REASONS if mark in text), None)


def _blamed(text: str, sources: Sequence[Source]) -> str:
    """Return the label of the index whose address uv's text has."""
    urls = _URL.findall(text)
    for source in sources:
        if source.url is not None and any(
            _bare(url).startswith(_bare(source.url).rstrip("/")) for url in urls
        ):
            return source.label
    return next((source.label for source in sources if source.name is None), sources[0].label)


def _bare(url: str) -> str:
    """Return an address without login."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return ""


def _clean(text: str, sources: Sequence[Source]) -> str:
    """Return uv's words without logins, and with the indexes' names for their addresses."""
    lines = [line for line in text.splitlines() if not line.startswith("warning:")]
    cleaned = _URL.sub(lambda found: _bare(found[0]), "\n".join(lines)).strip()
    for source in sources:
        if source.url is not None:
            cleaned = cleaned.replace(_bare(source.url).rstrip("/"), f"<{source.label}>")
    return cleaned
