"""GPU code: what a library holds, and which cards it runs on."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["sass", "ptx"]
Suffix = Literal["", "a", "f"]
Capability = tuple[int, int]
"""Compute capability of a card: major and minor."""

_CODE = re.compile(r"(?P<kind>sm|compute)_(?P<number>[1-9][0-9]{1,2})(?P<suffix>[af]?)")
_CAPABILITY = re.compile(r"(?P<major>[1-9][0-9]?)\.(?P<minor>[0-9])")


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class GpuCode:
    """One target that code was compiled for.

    Attributes:
        number: SM number: ten times the major of the compute capability, plus the minor.
        suffix: `a` for code of one capability alone, `f` for a family's, empty for plain code.
        kind: `sass` (machine code) or `ptx` (compiled by the driver when it is loaded).
    """

    number: int
    suffix: Suffix = ""
    kind: Kind = "sass"

    @property
    def capability(self) -> Capability:
        """The compute capability that it was compiled for."""
        return divmod(self.number, 10)

    def __str__(self) -> str:
        """Return it as nvcc spells it: `sm_90a`, `compute_80`."""
        return f"{'sm' if self.kind == 'sass' else 'compute'}_{self.number}{self.suffix}"

    def runs_on(self, capability: Capability) -> bool:
        """Say whether a card of a capability can run it, given a driver that is new enough.

        Machine code for X.y runs on X.z with z >= y and on no other major; with `a` on exactly X.y;
        with `f` on the family, which are the later minors of the same major. PTX is compiled for
        every later capability, with `a` for exactly its own, with `f` for its family. (NVIDIA,
        CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility", "Feature Set".)
        """
        if self.suffix == "a":
            return capability == self.capability
        if self.kind == "ptx" and not self.suffix:
            return capability >= self.capability
        return capability[0] == self.capability[0] and capability >= self.capability


def code_of(text: str) -> GpuCode:
    """Return a target as nvcc spells it (`sm_90a`).

    Raises:
        ValueError: It is none.
    """
    match = _CODE.fullmatch(text)
    if match is None:
        message = f"{text!r} is no target such as sm_90a"
        raise ValueError(message)
    kinds: dict[str, Kind] = {"sm": "sass", "compute": "ptx"}
    suffixes: dict[str, Suffix] = {"": "", "a": "a", "f": "f"}
    return GpuCode(
        number=int(match["number"]), kind=kinds[match["kind"]], suffix=suffixes[match["suffix"]]
    )


def capability_of(text: str) -> Capability:
    """Return a compute capability such as `9.0`.

    Raises:
        ValueError: The text is none.
    """
    match = _CAPABILITY.fullmatch(text)
    if match is None:
        message = f"{text!r} is not a compute capability, such as 9.0"
        raise ValueError(message)
    return int(match["major"]), int(match["minor"])


def verdict(codes: frozenset[GpuCode], capability: Capability) -> Literal["native", "jit", "none"]:
    """Say how code runs on a card: as it is, compiled by the driver first, or not at all."""
    fitting = {code.kind for code in codes if code.runs_on(capability)}
    if "sass" in fitting:
        return "native"
    return "jit" if fitting else "none"
