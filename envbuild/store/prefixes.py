"""Putting one prefix in place of another in a file's content: text, scripts, binaries."""

import re
from dataclasses import dataclass

LONGEST_LINE = 127
"""Bytes of the first line of a script that every kernel takes whole."""

_PYTHON = re.compile(r"(python|pypy)[0-9.]*w?")
_EXEC = "'''exec' "


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """Two paths, and the first of them that is to become the second.

    Attributes:
        old: Absolute path that stands in files.
        new: Absolute path that is to stand there.
    """

    old: str
    new: str

    def finds(self, content: bytes) -> bool:
        """Tell whether the old path stands in a content; another generation's does not count."""
        return self._pattern.search(content) is not None

    def in_text(self, content: bytes) -> bytes:
        """Return a text's bytes with the new path."""
        new = self.new.encode()
        return self._pattern.sub(lambda _: new, content)

    def in_script(self, content: bytes) -> bytes:
        """Return a script's bytes with the new path, such that a kernel takes its first line.

        Where that would be too long, or hold a space, a shell starts the Python, as the engines
        write it; where the shell did before, it still does.

        Raises:
            ValueError: The line would be too long, or hold a space, and it is no Python's.
        """
        first, _, body = content.partition(b"\n")
        if not first.startswith(b"#!") or not self.finds(first):
            return self._with_quotes(content)
        words = [self.in_text(word).decode() for word in first[2:].split()]
        line = f"#!{' '.join(words)}".encode()
        if len(line) <= LONGEST_LINE and " " not in words[0]:
            return line + b"\n" + self.in_text(body)
        if not _PYTHON.fullmatch(words[0].rpartition("/")[2]):
            message = f"its first line, {line.decode()!r}, would be too long or be cut at a space"
            raise ValueError(message)
        program = " ".join([f'"{words[0]}"', *words[1:]])
        head = f'#!/bin/sh\n{_EXEC}{program} "$0" "$@" #\'\'\'\n'
        return head.encode() + self.in_text(body)

    def _with_quotes(self, content: bytes) -> bytes:
        """Return a text with the new path, in quotes where a shell starts it and needs them."""
        start = f"#!/bin/sh\n{_EXEC}".encode()
        bare = re.compile(re.escape(start) + rb"(?P<program>" + self._pattern.pattern + rb"\S*)")
        found = bare.match(content)
        if found is None or " " not in self.new:
            return self.in_text(content)
        quoted = b'"%b"' % self.in_text(found["program"])
        return start + quoted + self.in_text(content[found.end() :])

    def in_binary(self, content: bytes, room: int) -> bytes:
        """Return a binary's bytes with the new path; what is after it in a string moves, NULs fill.

        Args:
            content: The file.
            room: Bytes that there are for the path: those of the placeholder that it replaced, or
                of the old path where that is not known.

        Raises:
            ValueError: The new path is longer than the room that there is.
        """
        new, old = self.new.encode(), self.old.encode()
        parts: list[bytes] = []
        at = 0
        while (found := self._pattern.search(content, at)) is not None:
            end = content.find(b"\0", found.end())
            end = len(content) if end < 0 else end
            text = content[found.start() : end]
            changed = self.in_text(text)
            growth = len(changed) - len(text)
            taken = max(growth, 0)
            padding = content[end : end + taken + 1]
            if len(new) > max(room, len(old)) or len(padding) < taken or padding.strip(b"\0"):
                message = f"the path has {len(new)} bytes, there is room for {max(room, len(old))}"
                raise ValueError(message)
            parts += [content[at : found.start()], changed.ljust(len(text) + taken, b"\0")]
            at = end + taken
        return b"".join([*parts, content[at:]])

    @property
    def _pattern(self) -> re.Pattern[bytes]:
        """The old path, but not where it begins the next generation's (`ID-2`)."""
        return re.compile(re.escape(self.old.encode()) + rb"(?!-[0-9])")
