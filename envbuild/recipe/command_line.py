"""Splitting a command line into words as systemd does (systemd.syntax(7), "Quoting").

It is not quite a shell's way: a backslash escapes in both kinds of quotes and outside of them, and
an escape that systemd does not know is an error. Nothing is expanded: `$`, `%` and `;` are
themselves.
"""

from typing import Final

_SPACE: Final = " \t\n\r"
_QUOTES: Final = "'\""
_PLAIN: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "s": " ",
    "\\": "\\",
    '"': '"',
    "'": "'",
}
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_OCTAL: Final = 3
_ASCII: Final = 0x80


def split(text: str) -> tuple[str, ...]:
    """Return the words of a command line.

    Raises:
        ValueError: A quote is not closed, or an escape is none.
    """
    found: list[str] = []
    position = 0
    while True:
        while position < len(text) and text[position] in _SPACE:
            position += 1
        if position == len(text):
            return tuple(found)
        word, position = _word(text, position)
        found.append(word)


def _word(text: str, position: int) -> tuple[str, int]:
    """Return the word that begins at a position, and where it ends."""
    parts: list[str] = []
    quote = ""
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\":
            part, position = _escape(text, position)
            parts.append(part)
        elif quote and character == quote:
            quote = ""
        elif not quote and character in _QUOTES:
            quote = character
        elif not quote and character in _SPACE:
            break
        else:
            parts.append(character)
    if quote:
        message = f"a quote is not closed in {text!r}"
        raise ValueError(message)
    return "".join(parts), position


def _escape(text: str, position: int) -> tuple[str, int]:
    """Return the character that an escape stands for, and where the escape ends."""
    letter = text[position : position + 1]
    if letter in _PLAIN:
        return _PLAIN[letter], position + 1
    start, width, base = position, _OCTAL, 8
    if letter in _HEX:
        start, width, base = position + 1, _HEX[letter], 16
    digits = text[start : start + width]
    code = 0
    if len(digits) == width and digits.isascii() and digits.isalnum():
        try:
            code = int(digits, base)
        except ValueError:
            code = 0
    most = 0x10FFFF if letter in {"u", "U"} else _ASCII - 1
    if not 0 < code <= most or 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004 - no halves of UTF-16
        message = (
            f"\\{letter}{'' if start == position else digits} in {text!r} is no escape that "
            "systemd knows; a backslash is written \\\\"
        )
        raise ValueError(message)
    return chr(code), start + width
