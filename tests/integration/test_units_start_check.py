"""The check before each start, as systemd runs it, on made-up hosts."""

import contextlib
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

import envbuild
from envbuild.host import system
from envbuild.native.code import capability_of, code_of, verdict
from envbuild.store import needs as written
from envbuild.store import unit_environment
from envbuild.target import Need, Needs
from envbuild.units import reasons

_SCRIPT = Path(envbuild.__file__).parent / "store/may_start.sh"


def _need(value: str) -> Need:
    return Need(value=value, origin="recipe")


_NEEDS = Needs(
    driver=_need(">=550.54.14,!=550.90.07"),
    gpus=_need("h100"),
    glibc=_need(">=2.17"),
    cuda=_need("12.4"),
    branches=_need("none"),
    floor=_need("525.60.13"),
    codes=_need("pytorch: sm_80 sm_90 compute_90"),
    cards=_need("2330=9.0 20b0=8.0 27b8=8.9 1db6=7.0"),
    cpu=_need("x86_64_v3"),
    platform=_need(f"linux-{'64' if os.uname().machine == 'x86_64' else 'aarch64'}"),
)


def _host(folder: Path, *, cards: tuple[str, ...] = ("2330",), driver: str = "550.54.15") -> Path:
    root = folder / "host"
    for number, card in enumerate(cards):
        place = root / f"sys/bus/pci/devices/0000:{number:02x}:00.0"
        place.mkdir(parents=True)
        _write(place / "vendor", "0x10de\n")
        _write(place / "class", "0x030200\n")
        _write(place / "device", f"0x{card}\n")
    if driver:
        _write(root / "sys/module/nvidia/version", f"{driver}\n")
    for node in ("nvidiactl", "nvidia-uvm"):
        _write(root / "dev" / node)
    flags = " ".join(sorted(set().union(*system._LEVELS[:2])))  # noqa: SLF001 - held against it
    _write(root / "proc/cpuinfo", f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    return root


def _write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _run(
    folder: Path, needs: Needs, root: Path, what: str = "cards", wait: int = 0
) -> tuple[int, str]:
    (folder / "may_start.sh").write_text(unit_environment.SCRIPTS["may_start.sh"])
    (folder / "needs.json").write_text(written.dumps(needs))
    words = ["/bin/sh", f"{folder}/may_start.sh", what, f"{wait}", f"{root}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


def test_a_host_that_fits(tmp_path: Path) -> None:
    assert _run(tmp_path, _NEEDS, _host(tmp_path)) == (0, "")


@pytest.mark.parametrize(
    ("code", "needs", "cards", "driver"),
    [
        (
            101,
            {"platform": "linux-aarch64" if os.uname().machine == "x86_64" else "linux-64"},
            (),
            "",
        ),
        (102, {"cpu": "x86_64_v4"}, (), ""),
        (103, {"glibc": ">=2.99"}, (), ""),
        (104, {}, (), ""),
        (105, {}, ("2330",), "550.54.13"),
        (105, {}, ("2330",), "550.90.07"),
        (105, {"branches": "R535,R570"}, ("2330",), "550.54.14"),
        (106, {"driver": "none"}, ("2330",), "470.1"),
        (107, {}, ("1db6",), "550.54.14"),
        (107, {"codes": "pytorch: sm_80; jaxlib: sm_90a"}, ("27b8", "20b0"), "550.54.14"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, code: int, needs: dict[str, str], cards: tuple[str, ...], driver: str
) -> None:
    wish = replace(_NEEDS, **{name: _need(value) for name, value in needs.items()})
    status, told = _run(tmp_path, wish, _host(tmp_path, cards=cards, driver=driver))
    assert status == code
    assert told.startswith(f"envbuild: {reasons.REFUSALS[code]}: ")


def test_a_service_without_cards_is_not_asked_for_any(tmp_path: Path) -> None:
    assert _run(tmp_path, _NEEDS, _host(tmp_path, cards=(), driver=""), "host") == (0, "")


def test_one_card_that_fits_or_is_not_known_is_enough(tmp_path: Path) -> None:
    for number, cards in enumerate((("1db6", "2330"), ("1db6", "ffff"))):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        assert _run(folder, _NEEDS, _host(folder, cards=cards)) == (0, "")


def test_what_may_come_is_waited_for(tmp_path: Path) -> None:
    root = _host(tmp_path)
    (root / "dev/nvidia-uvm").unlink()
    status, told = _run(tmp_path, _NEEDS, root)
    assert (status, told) == (255, "envbuild: not-yet: not there after 0 s: /dev/nvidia-uvm\n")

    (tmp_path / "needs.json").write_text(written.dumps(_NEEDS))
    words = ["/bin/sh", f"{tmp_path}/may_start.sh", "cards", "30", f"{root}"]
    waiting = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    while "sleep" not in _children(waiting.pid):
        assert waiting.poll() is None
    _write(root / "dev/nvidia-uvm")
    _, told = waiting.communicate(timeout=60)
    assert waiting.returncode == 255
    assert "came late" in told


def _children(pid: int) -> list[str]:
    """Return what a process has started and waits for."""
    found: list[str] = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{child}/comm").read_text().strip())
    return found


def test_switches_want_their_manager(tmp_path: Path) -> None:
    root = _host(tmp_path)
    switch = root / "sys/bus/pci/devices/0000:aa:00.0"
    for name, text in (("vendor", "0x10de"), ("class", "0x068000"), ("device", "0x22a3")):
        _write(switch / name, f"{text}\n")
    status, told = _run(tmp_path, _NEEDS, root)
    assert (status, "nvidia-fabricmanager" in told) == (255, True)
    _write(root / "run/nvidia-fabricmanager/nv-fabricmanager.pid", "7\n")
    assert _run(tmp_path, _NEEDS, root) == (0, "")


def test_unknown_needs_refuse_nothing(tmp_path: Path) -> None:
    unknown = Need(value=None, origin=None)
    needs = Needs(driver=unknown, gpus=unknown, glibc=unknown, cuda=unknown)
    assert _run(tmp_path, needs, _host(tmp_path)) == (0, "")


_VERSION = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(
    lambda parts: ".".join(map(str, parts))
)
_RANGE = st.lists(
    st.tuples(st.sampled_from([">=", "<=", "==", "!=", "<", ">", "~="]), _VERSION).filter(
        lambda one: one[0] != "~=" or "." in one[1]
    ),
    min_size=1,
    max_size=3,
).map(lambda ranges: ",".join("".join(one) for one in ranges))


def _ask(function: str, calls: list[tuple[str, str]]) -> list[bool]:
    """Call a function of the script many times in one shell."""
    source = _SCRIPT.read_text().rpartition("\nread_needs\n")[0]
    lines = [
        f"if {function} '{one}' '{other}'; then echo y; else echo n; fi" for one, other in calls
    ]
    done = subprocess.run(
        ["/bin/sh", "-s"],
        input="\n".join([source, *lines]),
        capture_output=True,
        text=True,
        check=True,
    )
    return [line == "y" for line in done.stdout.split()]


@settings(max_examples=20, deadline=None)
@given(pairs=st.lists(st.tuples(_VERSION, _RANGE), min_size=50, max_size=50))
def test_ranges_are_read_as_packaging_reads_them(pairs: list[tuple[str, str]]) -> None:
    wanted = [SpecifierSet(range_).contains(version) for version, range_ in pairs]
    assert _ask("fits", pairs) == wanted


def test_prefixes_are_read_as_packaging_reads_them() -> None:
    pairs = [
        (version, range_)
        for version in ("550", "550.54", "550.54.14", "55.1", "5505.1")
        for range_ in ("==550.*", "!=550.*", "==550.54.*", "!=550.54.*", ">=535,!=550.54.*")
    ]
    wanted = [SpecifierSet(range_).contains(version) for version, range_ in pairs]
    assert _ask("fits", pairs) == wanted


def test_code_runs_where_native_says_so() -> None:
    codes = [
        f"{kind}_{number}{suffix}"
        for kind in ("sm", "compute")
        for number in (70, 75, 80, 86, 90, 100, 103, 120)
        for suffix in ("", "a", "f")
    ]
    cards = ("7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1")
    pairs = [(code, card) for code in codes for card in cards]
    wanted = [
        verdict(frozenset({code_of(code)}), capability_of(card)) != "none" for code, card in pairs
    ]
    assert _ask("runs_on", pairs) == wanted
