"""The compiler that a recipe asks for, and which builds of others are as good.

======================= ========================= ==========================================
text                    the environment's own is  what others built has to be built with
======================= ========================= ==========================================
`gcc 12`, `gcc >=12`    GCC 12                    GCC 12 or newer
`gcc ==12.*`, `gcc ==12` GCC 12                   GCC 12 exactly
======================= ========================= ==========================================
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

Family = Literal["gcc", "clang"]

_FAMILIES: Final[dict[str, Family]] = {"gcc": "gcc", "clang": "clang"}
_TEXT: Final = re.compile(
    r"(?P<family>gcc|clang)\s*(?:(?P<exact>==)|>=|=|-)?\s*"
    r"(?P<version>\d+(?:\.\d+){0,2})(?P<star>\.\*)?"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CompilerWish:
    """A compiler as a recipe asks for it.

    Attributes:
        family: Which compiler.
        version: Its version, as far as it is said.
        exact: Whether what others built has to be built with that version, and no newer one.
    """

    family: Family
    version: tuple[int, ...]
    exact: bool = False

    @property
    def own(self) -> str:
        """The environment's own, such as `gcc 12`: what activation sets, what builds wheels."""
        return f"{self.family} {'.'.join(map(str, self.version))}"

    def takes(self, version: tuple[int, ...]) -> bool:
        """Say whether what that version built will do."""
        if self.exact:
            return version[: len(self.version)] == self.version
        return version >= self.version

    def __str__(self) -> str:
        """Return its one normal form: `gcc 12`, `gcc ==12.*`."""
        if not self.exact:
            return self.own
        return f"{self.family} =={'.'.join(map(str, self.version))}.*"


def parse(text: str) -> CompilerWish:
    """Return the compiler that a text means.

    Raises:
        ValueError: It is none.
    """
    match = _TEXT.fullmatch(text.strip().lower())
    if match is None or (match["star"] and not match["exact"]):
        message = (
            'expected a compiler such as "gcc 12" (12 or newer will do), "gcc ==12.*" (12 exactly) '
            f'or "clang 17", found {text!r}'
        )
        raise ValueError(message)
    return CompilerWish(
        family=_FAMILIES[match["family"]],
        version=tuple(map(int, match["version"].split("."))),
        exact=match["exact"] is not None,
    )


def normal(text: str) -> str:
    """Return a compiler's one normal form.

    Raises:
        ValueError: The text is none.
    """
    return str(parse(text))


def own(text: str | None) -> str | None:
    """Return the environment's own compiler of a checked text: `gcc 12` of `gcc ==12.*`."""
    return None if text is None else parse(text).own
