"""Markers of a universal answer in canonical form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.version import Version

from envbuild.solve.markers import environment, full, points, pythons, reach
from envbuild.target import Platform

RANGE = pythons(">=3.11,<3.15")
BOTH: tuple[Platform, ...] = ("linux-64", "linux-aarch64")
assert RANGE is not None


@pytest.mark.parametrize(
    ("text", "lowest", "minors"),
    [
        (">=3.11,<3.15", "3.11", [11, 12, 13, 14]),
        (">=3.11.4,<3.13", "3.11.4", [11, 12]),
        (">=3.10,!=3.11.*,<3.13", "3.10", [10, 12]),
        ("3.12", "3.12", [12]),
        ("==3.12.*", "3.12", [12]),
        ("~=3.11.2", "3.11.2", [11]),
        (">=3.11,<=3.12.5", "3.11", [11, 12]),
    ],
)
def test_ranges(text: str, lowest: str, minors: list[int]) -> None:
    found = pythons(text)
    assert found is not None
    assert (found.lowest, [minor for _, minor in found.minors]) == (lowest, minors)


@pytest.mark.parametrize("text", ["<3.15", "", "!=3.12", ">=4"])
def test_no_range(text: str) -> None:
    assert pythons(text) is None


@pytest.mark.parametrize(
    ("marker", "platforms", "expected"),
    [
        (None, BOTH, None),
        ("sys_platform == 'linux'", BOTH, None),
        ("python_version < '3.12'", BOTH, "python_full_version < '3.12'"),
        ("python_version <= '3.12'", BOTH, "python_full_version < '3.13'"),
        ("python_full_version < '3.12.3'", BOTH, "python_full_version < '3.12.3'"),
        (
            "python_full_version == '3.12.3'",
            BOTH,
            "python_full_version >= '3.12.3' and python_full_version < '3.12.4'",
        ),
        ("python_version >= '3.11'", BOTH, None),
        (
            "python_version != '3.12'",
            BOTH,
            "python_full_version < '3.12' or python_full_version >= '3.13'",
        ),
        ("python_version == '3.14'", BOTH, "python_full_version >= '3.14'"),
        ("platform_machine == 'aarch64'", BOTH, "platform_machine == 'aarch64'"),
        ("platform_machine == 'x86_64'", ("linux-64",), None),
        ("platform_machine != 'arm64'", BOTH, None),
        (
            "python_version < '3.12' and platform_machine == 'x86_64'",
            BOTH,
            "platform_machine == 'x86_64' and python_full_version < '3.12'",
        ),
        (
            "python_version < '3.12' or platform_machine == 'x86_64'",
            BOTH,
            (
                "platform_machine == 'aarch64' and python_full_version < '3.12'"
                " or platform_machine == 'x86_64'"
            ),
        ),
        ("python_version in '3.11 3.12'", BOTH, "python_full_version < '3.13'"),
    ],
)
def test_canonical(marker: str | None, platforms: tuple[Platform, ...], expected: str) -> None:
    assert RANGE is not None
    found = reach([marker], points([marker] if marker else [], RANGE), platforms)
    assert found.marker == expected
    assert found.pairs


@pytest.mark.parametrize(
    "marker",
    [
        "sys_platform == 'win32'",
        "os_name == 'nt'",
        "python_version < '3.11'",
        "platform_machine == 'arm64'",
        "platform_python_implementation == 'PyPy'",
    ],
)
def test_what_no_linux_of_the_recipe_reaches(marker: str) -> None:
    assert RANGE is not None
    assert reach([marker], points([marker], RANGE), BOTH).pairs == ()


def test_several_markers_of_one_release_are_alternatives() -> None:
    assert RANGE is not None
    markers = ["python_version < '3.12'", "python_version >= '3.12'"]
    assert reach(markers, points(markers, RANGE), BOTH).marker is None


_ATOMS = st.one_of(
    st.builds(
        "{} {} '{}'".format,
        st.sampled_from(["python_version", "python_full_version"]),
        st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
        st.sampled_from(["3.10", "3.11", "3.12", "3.13", "3.15"]),
    ),
    st.builds(
        "python_full_version {} '{}'".format,
        st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
        st.sampled_from(["3.11.4", "3.12.0", "3.14.9"]),
    ),
    st.sampled_from(
        [
            "platform_machine == 'x86_64'",
            "platform_machine != 'x86_64'",
            "sys_platform == 'linux'",
            "sys_platform == 'win32'",
            "os_name != 'nt'",
        ]
    ),
)
_MARKERS = st.recursive(
    _ATOMS,
    lambda inner: st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner),
    max_leaves=5,
)


@given(_MARKERS)
def test_the_canonical_marker_has_the_same_truth(marker: str) -> None:
    assert RANGE is not None
    found = reach([marker], points([marker], RANGE), BOTH)
    for minor in (11, 12, 13, 14):
        for micro in (0, 1, 3, 4, 5, 9, 10):
            for platform in BOTH:
                python = f"3.{minor}.{micro}"
                truth = Marker(marker).evaluate(environment(python, platform))
                told = bool(found.pairs) and (
                    found.marker is None
                    or Marker(found.marker).evaluate(environment(python, platform))
                )
                assert told == truth, (marker, found.marker, python)


def test_three_numbers() -> None:
    assert full(Version("3.11")) == "3.11.0"
    assert environment("3.11.4", "linux-aarch64")["platform_machine"] == "aarch64"
