"""Which of libstdc++'s two string ABIs a mangled C++ name speaks.

Since GCC 5 `std::string` and `std::list` are `std::__cxx11::…`, and functions that return one carry
the tag `B5cxx11`. Before it `std::string` was the substitution `Ss` (Itanium C++ ABI, 5.1.10), and
`std::wstring` an `Sb` with its arguments.
"""

import re
from dataclasses import dataclass, field
from typing import Literal

StringAbi = Literal["new", "old", "mixed", "none"]

_PLAIN = re.compile(rb"[^0-9ALSTf]+")
_NUMBER = re.compile(rb"[0-9]+")
_LITERAL = re.compile(rb"L[a-z](?:n?[0-9]+)E|L_Z")
_NUMBERED = re.compile(rb"(?:[ST][0-9A-Z]*_|A[0-9]+_|f[pL][0-9]*_)")
_OLD_STRING = re.compile(rb"S(?:s|bI[a-z]*St11char_traits)")
_OF_LIBSTDCXX = re.compile(
    rb"_Z(?:T[VTISC]|T[vh]n?[0-9]+_(?:n?[0-9]+_)?|GV|GTt)?Z?N?[KVRO]*S[tabsiod]"
)


@dataclass(slots=True)
class AbiVotes:
    """What the names of one file say, told one after the other.

    What is needed of libstdc++ decides; where that is silent, or speaks both, what the file exports
    of its own. Parts of libstdc++ that are linked statically (`libstdc++_nonshared.a` of Red Hat's
    toolsets) speak both whatever the program does, and what they need has no version.
    """

    named: set[StringAbi] = field(default_factory=set)
    open: set[StringAbi] = field(default_factory=set)
    own: set[StringAbi] = field(default_factory=set)
    parts: set[StringAbi] = field(default_factory=set)

    def count(self, name: bytes, *, defined: bool, versioned: bool) -> None:
        """Take one mangled name.

        Args:
            name: The symbol's name.
            defined: Whether the file exports it.
            versioned: Whether it names a version of the library that has it.
        """
        abi = abi_of(name)
        if abi is None:
            return
        if not defined:
            (self.named if versioned else self.open).add(abi)
        else:
            (self.parts if _OF_LIBSTDCXX.match(name) else self.own).add(abi)

    @property
    def answer(self) -> StringAbi:
        """The file's string ABI."""
        needed = self.named | (self.open - self.parts)
        for votes in (needed, self.own, set() if self.open else self.parts):
            if len(votes) == 1:
                return next(iter(votes))
        return "mixed" if needed or self.own else "none"


def abi_of(name: bytes) -> Literal["new", "old"] | None:
    """Return which ABI one mangled name speaks, None where it has no string in it."""
    if b"__cxx11" in name or b"B5cxx11" in name:
        return "new" if name.startswith(b"_Z") else None
    if (b"Ss" in name or b"SbI" in name) and name.startswith(b"_Z") and _has_old_string(name):
        return "old"
    return None


def _has_old_string(name: bytes) -> bool:
    """Walk a mangled name past its identifiers, which may hold the same two letters."""
    at, end = 2, len(name)
    while at < end:
        if _OLD_STRING.match(name, at):
            return True
        if skipped := (
            _PLAIN.match(name, at) or _LITERAL.match(name, at) or _NUMBERED.match(name, at)
        ):
            at = skipped.end()
        elif number := _NUMBER.match(name, at, at + 6):
            at = number.end() + int(number[0])
        else:
            at += 2 if name[at : at + 1] == b"S" else 1
    return False
