"""Let one MPS server have a card, and set its compute mode back; a copy lies in each generation.

`compute_mode.py exclusive UNIT` sets the mode of the cards that `cards.py` gave the unit to
EXCLUSIVE_PROCESS and notes what it was, and how much memory there is to share; `compute_mode.py
back UNIT` sets it back. Both ask NVML, with calls that need no structures but an array (nvml.h). A
call that hangs is ended by systemd.
It imports nothing of envbuild and runs on every Python from 3.9 on.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
from pathlib import Path

FAILED = 69
"""Exit code where NVML does not do it (sysexits.h, EX_UNAVAILABLE)."""
_EXCLUSIVE = 3  # NVML_COMPUTEMODE_EXCLUSIVE_PROCESS


class No(Exception):
    """NVML does not do it; the reason in words."""


class Nvml:
    """The few calls that are needed."""

    def __init__(self, library: str) -> None:
        """Load the library and begin."""
        self._library = ctypes.CDLL(library)
        self._call("nvmlInit_v2")

    def card(self, address: str) -> ctypes.c_void_p:
        """Return the card at a PCI address."""
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByPciBusId_v2", address.encode(), ctypes.byref(handle))
        return handle

    def mode(self, card: ctypes.c_void_p) -> int:
        """Return a card's compute mode."""
        mode = ctypes.c_uint()
        self._call("nvmlDeviceGetComputeMode", card, ctypes.byref(mode))
        return mode.value

    def set_mode(self, card: ctypes.c_void_p, mode: int) -> None:
        """Set a card's compute mode."""
        self._call("nvmlDeviceSetComputeMode", card, ctypes.c_uint(mode))

    def memory_bytes(self, card: ctypes.c_void_p) -> int:
        """Return a card's memory."""
        memory = (ctypes.c_ulonglong * 3)()  # nvmlMemory_t: total, free, used
        self._call("nvmlDeviceGetMemoryInfo", card, ctypes.byref(memory))
        return int(memory[0])

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            what = f"{name} answers {code}"
            raise No(what)


def exclusive(nvml: Nvml, own: Path, unit: str) -> None:
    """Set the mode of a unit's cards; what it was is noted first, so that it can be set back."""
    held = json.loads((own / "cards.json").read_text())
    note = _note(own, unit)
    before = _before(note)
    cards = {address: nvml.card(address) for address in held[unit]["addresses"]}
    least = min(nvml.memory_bytes(card) for card in cards.values())
    _replace(own / "cards" / f"{unit}.memory", f"{least >> 20}")
    for address, card in cards.items():
        before.setdefault(address, nvml.mode(card))
        _replace(note, json.dumps(before))
        nvml.set_mode(card, _EXCLUSIVE)


def back(nvml: Nvml, own: Path, unit: str) -> None:
    """Set back what was changed."""
    note = _note(own, unit)
    for address, mode in _before(note).items():
        nvml.set_mode(nvml.card(address), mode)
    if note.exists():
        note.unlink()


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text)
    beside.replace(path)


def _note(own: Path, unit: str) -> Path:
    return own / "cards" / f"{unit}.modes"


def _before(note: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(note.read_text()) if note.exists() else {}
    return found


def main(words: list[str]) -> int:
    """Do what the words say, and return the exit code."""
    parser = argparse.ArgumentParser(prog="compute_mode.py")
    parser.add_argument("what", choices=("exclusive", "back"))
    parser.add_argument("unit")
    parser.add_argument("--root", type=Path, default=Path("/"), help="of the host that is read")
    parser.add_argument("--nvml", default="libnvidia-ml.so.1", help="another library")
    wish = parser.parse_args(words)
    do = {"exclusive": exclusive, "back": back}[wish.what]
    try:
        do(Nvml(wish.nvml), wish.root / "run/envbuild", wish.unit)
    except (No, OSError, KeyError) as error:
        os.write(2, f"{wish.unit}: {error}\n".encode())
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
