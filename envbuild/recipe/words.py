"""The small languages that a recipe's scalars are written in: each checked, each in plain words.

Every function takes the text and returns it in its one normal form, or raises `ValueError` with
what was expected; the place is added where the recipe is loaded.
"""

import functools
import math
import re
import shlex
from typing import Final
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from envbuild.recipe import command_line, signals

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VERSION: Final = re.compile(r"\d+(\.\d+)*")
_SIZE: Final = re.compile(r"\d{1,15}|\d{1,9}(\.\d{1,9})?([KMGT]B?|B)")
_PERCENT: Final = re.compile(r"\d{1,6}(\.\d{1,2})?%")
_UNITS: Final = (
    "us|ms|s|sec|second|seconds|m|min|minute|minutes|h|hr|hour|hours|d|day|days|w|week|weeks"
)
_SECONDS: Final = {
    "": 1.0,
    "us": 1e-6,
    "ms": 1e-3,
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}
_SPAN: Final = re.compile(rf"\d+(\.\d+)?|(\d+(\.\d+)?\s*({_UNITS})\s*)+")
_LISTEN: Final = re.compile(r"\d{1,5}|[^\s/@]+:\d{1,5}|/\S+|@\S+")
_CHANNEL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")
_CARD: Final = re.compile(
    r"\d{1,3}|(GPU|MIG)-[0-9A-Fa-f/-]{4,80}|([0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
)
_LAST_PORT: Final = 65535
_SCHEDULE: Final = re.compile(r"[A-Za-z0-9*/.,:~ _+-]+")


def _expected(what: str, text: str) -> ValueError:
    return ValueError(f"expected {what}, found {text!r}")


def name(text: str) -> str:
    """Check a name of a recipe, an index or a service."""
    if not _NAME.fullmatch(text):
        what = "a name of at most 64 letters, digits, '.', '_', '-' (the first a letter or digit)"
        raise _expected(what, text)
    return text


def version(text: str) -> str:
    """Check a plain version such as `12.4`."""
    if not _VERSION.fullmatch(text):
        what = 'a version such as "12.4"'
        raise _expected(what, text)
    return text


def version_range(text: str) -> str:
    """Check a version range with exclusions, such as `>=550.54.14,!=550.90.07`."""
    try:
        specifiers = SpecifierSet(text)
    except InvalidSpecifier:
        what = 'a version range such as ">=550.54.14,!=550.90.07"'
        raise _expected(what, text) from None
    if any(one.operator == "===" for one in specifiers):
        what = "a version range without '==='"
        raise _expected(what, text)
    return ",".join(part.replace(" ", "") for part in text.split(","))


def python(text: str) -> str:
    """Check a Python version (`3.10`, `3.11.7`) or a range of them (`>=3.11,<3.15`)."""
    what = 'a Python version such as "3.11" or "3.11.7", or a range such as ">=3.11,<3.15"'
    if re.fullmatch(r"3\.\d+(\.\d+)?(\.\*)?", text):
        return text.removesuffix(".*")
    if text[:1] not in {"<", ">", "=", "!", "~"}:
        raise _expected(what, text)
    try:
        return version_range(text)
    except ValueError:
        raise _expected(what, text) from None


def glibc(text: str) -> str:
    """Check a glibc version such as `2.28`."""
    if not re.fullmatch(r"2\.\d{1,2}", text):
        what = 'a glibc version such as "2.28"'
        raise _expected(what, text)
    return text


def branch(text: str) -> str:
    """Check a driver branch (`R550` or `550`) and return its number."""
    if not re.fullmatch(r"[Rr]?\d{3,4}", text):
        what = 'a driver branch such as "R550"'
        raise _expected(what, text)
    return text.upper().removeprefix("R")


def archspec(text: str) -> str:
    """Check the name of a CPU microarchitecture such as `x86_64_v3`."""
    if not re.fullmatch(r"[a-z0-9_]+", text):
        what = 'a microarchitecture such as "x86_64_v3"'
        raise _expected(what, text)
    return text


def framework(text: str) -> str:
    """Check a framework with its version, such as `pytorch ==2.4.0`; return `name ==version`."""
    what = 'a framework and its version such as "pytorch ==2.4.0"'
    try:
        wish = Requirement(text)
    except InvalidRequirement:
        raise _expected(what, text) from None
    if wish.url or wish.marker or wish.extras:
        raise _expected(what, text)
    return f"{canonicalize_name(wish.name)} {wish.specifier}".strip()


def http_url(text: str) -> str:
    """Check an http(s) address without a login; a slash at its end goes."""
    what = "an http(s) address"
    try:
        parts = urlsplit(text)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        raise _expected(what, text) from None
    if "@" in parts.netloc:
        shown = f"{parts.scheme}://…@{parts.netloc.rpartition('@')[2]}{parts.path}"
        message = f"a login may not stand in a recipe (found in {shown}): it would reach the lock"
        raise ValueError(message)
    if not good or re.search(r"\s", text):
        raise _expected(what, text)
    return text.rstrip("/")


def channel(text: str) -> str:
    """Check a conda channel: a name such as `conda-forge`, `nvidia/label/cuda-12.4.0`, or a URL."""
    if "://" in text:
        return http_url(text)
    if text in {"defaults", "nodefaults"}:
        message = f"{text!r} is no channel but conda's setting: name the channels that are meant"
        raise ValueError(message)
    if not _CHANNEL.fullmatch(text):
        what = (
            'a channel such as "conda-forge" or "nvidia/label/cuda-12.4.0", or an http(s) address'
        )
        raise _expected(what, text)
    return text


def conda_name(text: str) -> str:
    """Check a conda package's name; conda knows only lower case."""
    if not re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*", text.lower()):
        what = "a package name"
        raise _expected(what, text)
    return text.lower()


def pypi_name(text: str) -> str:
    """Check a PyPI project's name and normalise it."""
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", text):
        what = "the name of a PyPI project"
        raise _expected(what, text)
    return canonicalize_name(text)


def gpu(text: str) -> str:
    """Check a GPU's name and normalise it: `H100 SXM` becomes `h100-sxm`."""
    normal = re.sub(r"[\s_-]+", "-", text.lower())
    if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", normal):
        what = 'a GPU such as "h100"'
        raise _expected(what, text)
    return normal


def cuda_arch(text: str) -> str:
    """Check a compute capability: `9.0`, `9.0a`, `10.0f`, `9.0+PTX`."""
    if not re.fullmatch(r"\d{1,2}\.\d[af]?(\+PTX)?", text):
        what = 'text like "9.0", "9.0a" or "9.0+PTX"'
        raise _expected(what, text)
    return text


def finding_code(text: str) -> str:
    """Check the code of a finding, such as `weak-hash`."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", text):
        what = 'the code of a finding such as "weak-hash"'
        raise _expected(what, text)
    return text


def module(text: str) -> str:
    """Check the dotted name of a module to import."""
    if not all(part.isidentifier() for part in text.split(".")):
        what = 'a module such as "torch.cuda"'
        raise _expected(what, text)
    return text


def command(text: str) -> str:
    """Check that a command line can be split into words."""
    try:
        words = shlex.split(text)
    except ValueError:
        message = f"a quote is not closed in {text!r}"
        raise ValueError(message) from None
    if not words:
        message = "is empty"
        raise ValueError(message)
    return text


def service_command(text: str) -> str:
    """Check that systemd can split a command line into words."""
    if not command_line.split(text):
        message = "is empty"
        raise ValueError(message)
    return text


def service_name(text: str) -> str:
    """Check a service's name; the dot separates it from the environment's in a unit's name."""
    if not _NAME.fullmatch(text) or "." in text:
        what = "a name of at most 64 letters, digits, '_', '-' (the first a letter or digit)"
        raise _expected(what, text)
    return text


def size(text: str) -> str:
    """Check an amount of memory: bytes with K, M, G or T, a share of all, or `infinity`."""
    if text == "infinity" or _at_most_all(text) or _SIZE.fullmatch(text):
        return text
    what = 'a size such as "40G", "80%" or "infinity"'
    raise _expected(what, text)


def size_bytes(text: str) -> int:
    """Return the bytes of a checked size or rate: `40G` is 40 times 2**30, as systemd has it."""
    number, unit = re.fullmatch(r"([\d.]+)([KMGT]?)B?", text).groups()  # type: ignore[union-attr]
    return round(float(number) * 1024.0 ** " KMGT".index(unit or " "))


def byte_size(text: str) -> str:
    """Check an amount of bytes with K, M, G or T, or `infinity`."""
    if text == "infinity" or (_SIZE.fullmatch(text) and text.strip("0.KMGTPEB")):
        return text
    what = 'a size such as "40G" or "infinity"'
    raise _expected(what, text)


def rate(text: str) -> str:
    """Check an amount of bytes per second, with K, M, G or T, with or without `/s`."""
    plain = text.removesuffix("/s").rstrip()
    if not _SIZE.fullmatch(plain) or not plain.strip("0.KMGTPEB"):
        what = 'bytes per second such as "2G"'
        raise _expected(what, text)
    return plain


def _at_most_all(text: str) -> bool:
    return bool(_PERCENT.fullmatch(text)) and float(text[:-1]) <= 100  # noqa: PLR2004


def count(text: str) -> str:
    """Check a number, a share, or `infinity`."""
    if text == "infinity" or _at_most_all(text) or (text.isdecimal() and int(text) > 0):
        return text
    what = 'a number such as "4096", "80%" or "infinity"'
    raise _expected(what, text)


def percent(text: str) -> str:
    """Check a share such as `50%`; none of it is no share."""
    if not _PERCENT.fullmatch(text) or float(text[:-1]) == 0:
        what = 'a share such as "50%"'
        raise _expected(what, text)
    return text


def cpu_list(text: str) -> str:
    """Check a list of CPUs or memory nodes: `0-15,32`."""
    for part in re.split(r"\s*,\s*|\s+", text):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if match is None or (match[2] is not None and int(match[1]) > int(match[2])):
            what = 'numbers and ranges such as "0-15,32"'
            raise _expected(what, text)
    return text


def time_span(text: str) -> str:
    """Check a time span as systemd writes it: `90s`, `5min`, `1h 30min`, `infinity`."""
    if text != "infinity" and not _SPAN.fullmatch(text):
        what = 'a time such as "90s", "5min" or "1h 30min"'
        raise _expected(what, text)
    return text


@functools.lru_cache(maxsize=256)
def seconds(text: str) -> float:
    """Return how many seconds a checked time span is; `infinity` is `math.inf`."""
    if text == "infinity":
        return math.inf
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def schedule(text: str) -> str:
    """Check the characters of a calendar time: `daily`, `Mon *-*-* 03:00`."""
    if not _SCHEDULE.fullmatch(text):
        what = 'a calendar time such as "daily" or "Mon *-*-* 03:00"'
        raise _expected(what, text)
    return text


def listen(text: str) -> str:
    """Check what a socket listens on: a port, `address:port`, or a path."""
    port = re.search(r"(?:^|:)(\d+)$", text)
    if not _LISTEN.fullmatch(text) or (port and not 0 < int(port[1]) <= _LAST_PORT):
        what = 'a port, an address with a port, or a path such as "/run/x.sock"'
        raise _expected(what, text)
    return text


def absolute_path(text: str) -> str:
    """Check an absolute path without `..`."""
    if not text.startswith("/") or ".." in text.split("/"):
        what = "an absolute path"
        raise _expected(what, text)
    return text


def card(text: str) -> str:
    """Check a card: its index, its UUID (or a MIG instance's), or its PCI address."""
    if not _CARD.fullmatch(text):
        what = 'a card such as "0", "GPU-UUID" or "0000:3b:00.0"'
        raise _expected(what, text)
    return text


def unit(text: str) -> str:
    """Check a service's name, or a unit's with its suffix."""
    if not re.fullmatch(r"[A-Za-z0-9:_.@\\-]{1,255}", text):
        what = "a service of this recipe, or a unit with its suffix"
        raise _expected(what, text)
    return text


def account(text: str) -> str:
    """Check the name or number of a user or group."""
    if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,30}|\d{1,10}", text):
        what = "the name of a user or group"
        raise _expected(what, text)
    return text


def signal(text: str) -> str:
    """Check a signal's name: `SIGTERM`, `SIGUSR1`, `SIGRTMIN+3`."""
    if signals.number(text) is None:
        what = 'a signal such as "SIGTERM"'
        raise _expected(what, text)
    return text


def variable(text: str) -> str:
    """Check the name of an environment variable."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        what = "a variable's name of letters, digits and '_'"
        raise _expected(what, text)
    return text


def without_login(text: str) -> str:
    """Return a text with the logins of its addresses left out, for messages."""
    return re.sub(r"(://)[^/\s@]*@", r"\1…@", text)
