"""Which builds go with which card and driver."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envbuild.compat.model import Facts
from envbuild.compat.nearest import nearest
from envbuild.compat.tables import load
from envbuild.compat.triangle import (
    Judged,
    Wanted,
    driver_numbers,
    first_with_code,
    judged,
    works,
)

FACTS = load()
CAPABILITIES = [row.capability for row in FACTS.architectures]
CONDA = replace(FACTS, builds=tuple(row for row in FACTS.builds if row.build_string))
TABLES = st.sampled_from([FACTS, CONDA])
LAST_BRANCHES = {
    f"{row.last_branch} is the last driver branch that runs {row.capability}"
    for row in FACTS.architectures
    if row.last_branch is not None
}
DRIVERS = ["450", "525.60.13", "535.54.03", "550", "550.54.15", "570.26", "580", "590", "620"]
DRIVER_VERSIONS = (
    st.sampled_from([row.driver or "580" for row in FACTS.toolkits])
    | st.integers(390, 700).map(str)
    | st.tuples(st.integers(390, 700), st.integers(0, 300)).map("{0[0]}.{0[1]:02}".format)
)


def names(found: list[Judged]) -> list[str]:
    return [each.build.name for each in found]


def pytorch(versions: str = "", **more: Any) -> Wanted:  # noqa: ANN401
    return Wanted(framework="pytorch", versions=versions, **more)


def jax(versions: str = "", **more: Any) -> Wanted:  # noqa: ANN401
    return Wanted(framework="jax", versions=versions, **more)


def test_h100_and_pytorch_2_4_offer_cuda_12_4_with_cudnn_9_1() -> None:
    found = works(FACTS, pytorch("==2.4.0", capabilities=("9.0",)))
    assert names(found)[0] == "pytorch 2.4.0 cu124"
    assert (found[0].build.cuda, found[0].build.cudnn) == ("12.4", "9.1.0.70")
    assert found[0].answer == "native"


def test_b200_and_pytorch_2_4_is_refused_and_the_first_release_with_code_named() -> None:
    wanted = pytorch("==2.4.0", capabilities=("10.0",))
    assert works(FACTS, wanted) == []
    against = [each for each in judged(FACTS, wanted) if each.build.version == "2.4.0"]
    assert len(against) == 5
    for each in against:
        (reason,) = each.reasons
        assert reason.part == "gpu"
        assert "no code for 10.0" in reason.what
        assert "no PTX" in reason.what
        assert reason.sources
    first = first_with_code(FACTS, wanted)
    assert first is not None
    assert (first.build.version, first.build.origin) == ("2.7.0", "cu128")


@pytest.mark.parametrize(
    ("version", "cudnn", "other"), [("0.4.28", "8.9", "9.1"), ("0.4.29", "9", "8.9")]
)
def test_jax_and_its_cudnn(version: str, cudnn: str, other: str) -> None:
    assert works(FACTS, jax(f"=={version}", cudnn=cudnn))
    assert works(FACTS, jax(f"=={version}", cudnn=other)) == []


def test_torch_from_pypi_wants_driver_580_from_2_11_on() -> None:
    old = works(FACTS, pytorch(">=2.11", capabilities=("9.0",), driver="550"))
    assert {each.build.origin for each in old} <= {"cu126", "cu128", "conda-forge"}
    new = works(FACTS, pytorch(">=2.11", capabilities=("9.0",), driver="580.65.06"))
    assert "pytorch 2.11.0 pypi" in names(new)


def test_code_for_one_capability_alone_is_not_said_to_run_on_another() -> None:
    build = replace(
        next(row for row in FACTS.builds if row.name == "pytorch 2.8.0 pypi"),
        codes=("sm_90a", "sm_100a"),
        all_codes=(),
        cudnn=None,
    )
    facts = replace(FACTS, builds=(build,))
    for capability, works_there in (
        ("9.0", True),
        ("10.0", True),
        ("10.3", False),
        ("12.0", False),
    ):
        assert bool(works(facts, pytorch(capabilities=(capability,)))) is works_there


def test_ptx_needs_the_driver_of_the_toolkit_that_made_it() -> None:
    build = replace(
        next(row for row in FACTS.builds if row.name == "pytorch 2.5.0 cu124"),
        codes=("compute_80",),
        cudnn=None,
    )
    facts = replace(FACTS, builds=(build,))
    assert works(facts, pytorch(capabilities=("9.0",), driver="535.104.05")) == []
    (one,) = works(facts, pytorch(capabilities=("9.0",), driver="550.54.14"))
    assert (one.answer, one.driver) == ("jit", "550.54.14")


def test_the_nearest_set_has_the_fewest_changes_and_the_nearest_release() -> None:
    found = nearest(FACTS, jax("==0.4.28", cudnn="9"))
    assert [(each.build.version, *each.parts) for each in found] == [
        ("0.4.28", "cudnn"),
        ("0.4.29", "framework"),
        ("0.4.30", "framework"),
    ]
    (first, *_) = nearest(FACTS, pytorch("==2.4.0", capabilities=("10.0",)))
    assert (first.build.version, first.build.origin) == ("2.7.0", "cu128")
    assert nearest(FACTS, jax(platform="linux-aarch64")) == []


def test_conda_builds_are_among_what_is_tested() -> None:
    assert {(row.framework, row.origin) for row in CONDA.builds} == {
        ("pytorch", "pytorch"),
        ("pytorch", "conda-forge"),
        ("jax", "conda-forge"),
    }


def test_a_card_older_than_the_driver_branch() -> None:
    wanted = pytorch("==2.4.0", capabilities=("7.0",), driver="580")
    assert works(FACTS, wanted)
    late = replace(wanted, driver="590")
    assert works(FACTS, late) == []
    reasons = [reason.what for each in judged(FACTS, late) for reason in each.reasons]
    assert "580 is the last driver branch that runs 7.0" in reasons
    assert {each.drivers for each in nearest(FACTS, late)} == {"525.60.13 to 580"}


def test_a_python_without_a_wheel_and_what_is_near() -> None:
    wanted = pytorch("==2.4.0", capabilities=("9.0",), python="3.13")
    assert works(FACTS, wanted) == []
    for each in nearest(FACTS, wanted):
        assert {reason.part for reason in each.reasons} <= {"python", "framework"}
        assert len(each.reasons) == 1


def exactly(wanted: Wanted, each: Judged) -> Wanted:
    """Return a set with all that a build is, as far as the set is open there."""
    build = each.build
    pinned = build.cudnn if (build.cudnn or "<")[0].isdigit() else None
    return replace(
        wanted,
        framework=build.framework,
        versions=f"{wanted.versions},=={build.version}".lstrip(","),
        driver=wanted.driver or each.driver,
        cuda=wanted.cuda or build.cuda or build.cuda_major,
        cudnn=wanted.cudnn or pinned,
        python=wanted.python or next(iter(build.pythons), None),
    )


def alone(facts: Facts, each: Judged) -> Facts:
    return replace(facts, builds=(each.build,))


WANTED = st.builds(
    Wanted,
    capabilities=st.lists(st.sampled_from(CAPABILITIES), max_size=2).map(tuple),
    driver=st.none() | st.sampled_from(DRIVERS),
    cuda=st.none() | st.sampled_from(["11.8", "12", "12.4", "12.8", "13", "13.0"]),
    cudnn=st.none() | st.sampled_from(["8", "8.9", "9", "9.1", "9.10.2"]),
    framework=st.none() | st.sampled_from(["pytorch", "jax"]),
    versions=st.sampled_from(["", ">=2.3", "==2.4.0", "<0.5", ">=0.9"]),
    python=st.none() | st.sampled_from(["3.9", "3.11", "3.13"]),
)


@given(WANTED, TABLES)
@settings(deadline=None, max_examples=40)
def test_a_set_works_exactly_where_it_is_listed(wanted: Wanted, facts: Facts) -> None:
    """Asking for exactly what a listed build is says yes; for one that is not listed, no."""
    listed = set(names(works(facts, wanted)))
    for each in judged(facts, wanted)[::3]:
        full = exactly(wanted, each)
        assert (each.build.name in listed) is not bool(each.reasons)
        assert bool(works(alone(facts, each), full)) is (each.build.name in listed)


@given(WANTED, TABLES)
@settings(deadline=None, max_examples=40)
def test_what_speaks_against_a_set_is_all_that_does(wanted: Wanted, facts: Facts) -> None:
    """With the named parts left open a build works, and each reason has a source."""
    for each in [one for one in judged(facts, wanted) if one.reasons][::3]:
        parts = {reason.part for reason in each.reasons}
        assert all(reason.what and reason.sources for reason in each.reasons)
        opened = dict.fromkeys(parts & {"driver", "cuda", "cudnn", "python"})
        cards = () if "gpu" in parts else wanted.capabilities
        versions = "" if "framework" in parts else wanted.versions
        relaxed = replace(wanted, capabilities=cards, versions=versions, **opened)  # type: ignore[arg-type]
        assert works(alone(facts, each), relaxed)


@given(WANTED, TABLES, st.lists(DRIVER_VERSIONS, min_size=2, max_size=4))
@settings(deadline=None, max_examples=40)
def test_a_newer_driver_loses_nothing_unless_a_card_s_last_branch_says_so(
    wanted: Wanted, facts: Facts, drivers: list[str]
) -> None:
    before: set[str] = set()
    for driver in sorted(drivers, key=driver_numbers):
        found = judged(facts, replace(wanted, driver=driver))
        for each in found:
            if each.build.name in before:
                assert {reason.what for reason in each.reasons} <= LAST_BRANCHES
                assert all(reason.part == "driver" for reason in each.reasons)
        before = {each.build.name for each in found if not each.reasons}
