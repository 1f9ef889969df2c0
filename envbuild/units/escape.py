r"""Every value, written for its place in a unit file, such that systemd reads back just that.

What each place undoes was read in systemd 252 (src/core/load-fragment.c, src/basic/extract-word.c)
and is held against its parser by tests:

==================== ============ ============ =========== ==========================
place                quotes       C escapes    specifiers  `$VAR`
==================== ============ ============ =========== ==========================
`ExecStart=`         yes          yes          `%` as `%%` `$` as `$$`, not in the program
`Environment=`       yes          yes          `%` as `%%` no
`ReadWritePaths=`    yes          `\\`, `\"`   `%` as `%%` no
`WorkingDirectory=`  no           no           `%` as `%%` no
`Description=`       no           no           `%` as `%%` no
==================== ============ ============ =========== ==========================

What cannot be written in a place is a `ValueError`: nothing is dropped or changed.
"""

import functools
import re
from collections.abc import Iterable
from typing import Final

_SAFE_WORD: Final = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
_SAFE_PATH: Final = re.compile(r"[A-Za-z0-9_./@+,=-]+")
_ESCAPES: Final = {
    ord("\\"): "\\\\",
    ord('"'): '\\"',
    ord("\n"): "\\n",
    ord("\t"): "\\t",
    ord("\r"): "\\r",
    ord("%"): "%%",
    **{code: f"\\x{code:02x}" for code in (*range(1, 9), 11, 12, *range(14, 32), 127)},
}
_IN_EXEC: Final = {**_ESCAPES, ord("$"): "$$"}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NOWHERE: Final = re.compile("[\x00\ud800-\udfff]")
_IN_NO_PROGRAM: Final = re.compile(r"[\x00-\x1f\x7f\"'\\$]")
_INSTANCE: Final = "%i"


def instance(text: str) -> str:
    """Return an escaped text of a template with `%i` as the instance's name again."""
    return text.replace("%%i", _INSTANCE)


@functools.lru_cache(maxsize=1024)
def word(text: str) -> str:
    """Return one word of a command line."""
    if _SAFE_WORD.fullmatch(text):
        return text
    return f'"{_encodable(text).translate(_IN_EXEC)}"'


@functools.lru_cache(maxsize=1024)
def program(path: str) -> str:
    """Return the path of a program, the first word of a command line.

    The recipe's check lets through only what systemd takes; a prefix comes from the store.

    Raises:
        ValueError: systemd takes no such path.
    """
    if _IN_NO_PROGRAM.search(_encodable(path)):
        message = f"systemd takes no program at {path!r}"
        raise ValueError(message)
    return path if _SAFE_PATH.fullmatch(path) else f'"{path.replace("%", "%%")}"'


def command(path: str, words: Iterable[str]) -> str:
    """Return a command line.

    Raises:
        ValueError: systemd takes no such path of a program, or a word cannot be written.
    """
    return " ".join([program(path), *map(word, words)])


def assignment(name: str, value: str) -> str:
    """Return one assignment of `Environment=`."""
    return f'"{name}={_encodable(value).translate(_ESCAPES)}"'


def line(text: str) -> str:
    """Return a text that fills its line.

    Raises:
        ValueError: It has a line end or another control character, or a backslash at its end.
    """
    if _CONTROL.search(_encodable(text)):
        message = f"a line end or control character cannot stand there, found {text!r}"
        raise ValueError(message)
    if text.endswith("\\"):
        message = f"a backslash at the end would join the next line, found {text!r}"
        raise ValueError(message)
    return text.replace("%", "%%")


def path(text: str) -> str:
    """Return a path that fills its line: spaces are kept, quotes are no quotes.

    Raises:
        ValueError: It has a line end or another control character.
    """
    if _SAFE_PATH.fullmatch(text):
        return text
    if text.endswith(("\\", " ", "\t")):
        text += "/"  # systemd takes a slash at the end away, after the line was read
    return line(text)


def listed(text: str) -> str:
    """Return a path of a list that is separated by spaces or colons.

    Raises:
        ValueError: It has a line end or another control character.
    """
    if _SAFE_PATH.fullmatch(text):
        return text
    if _CONTROL.search(_encodable(text)):
        message = f"a line end or control character cannot stand there, found {text!r}"
        raise ValueError(message)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _encodable(text: str) -> str:
    """Return a text that UTF-8 can hold; systemd leaves out lines that are not UTF-8."""
    if _NOWHERE.search(text):
        message = f"no unit can hold {text!r}"
        raise ValueError(message)
    return text
