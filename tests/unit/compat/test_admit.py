"""May an environment run on a host: what refuses it, what is not known, what is fine."""

from dataclasses import replace
from pathlib import Path

import pytest
from host_trees import Card, HostTree
from unit.compat.hosts import facts, gpu, host, nvml

from envbuild.compat.admit import admit
from envbuild.compat.needs import complete
from envbuild.compat.subject import Part, Subject
from envbuild.compat.tables import load
from envbuild.findings import Findings, Severity
from envbuild.host.machine import Host
from envbuild.host.readings import NoAnswer, Value
from envbuild.target import NONE, UNKNOWN, Need, Needs


def _need(value: str) -> Need:
    return Need(value=value, origin="recipe")


_FOR_CPU = Needs(
    driver=_need(NONE),
    gpus=_need(NONE),
    glibc=_need(">=2.28"),
    cuda=_need(NONE),
    branches=_need(NONE),
    floor=_need(NONE),
    codes=_need(NONE),
    capabilities=_need(NONE),
    cpu=_need("x86_64"),
    platform=_need("linux-64"),
    memory=_need(NONE),
)
_FOR_H100 = replace(
    _FOR_CPU,
    driver=_need(">=550.54.14,!=550.90.07"),
    gpus=_need("h100"),
    cuda=_need("12.4"),
    floor=_need("525.60.13"),
    codes=_need("pytorch: sm_80 sm_90"),
    capabilities=_need("9.0"),
)


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path / "root").system(glibc="2.31")


def _with_card(tree: HostTree, driver: str, capability: str = "9.0") -> Host:
    tree.driver(driver).card(Card(address="0000:18:00.0"))
    card = gpu(capability=capability, pci_address=Value("0000:18:00.0"))
    return host(tree, nvml(card, driver=driver))


def _asked(needs: Needs, seen: Host) -> Findings:
    return admit(needs, seen, facts(), name="demo", is_here=False)


def _codes(findings: Findings) -> list[tuple[str, str]]:
    return [(one.severity.value, one.code) for one in findings]


def test_an_environment_without_cards_runs_anywhere(tree: HostTree) -> None:
    assert _asked(_FOR_CPU, host(tree)) == ()


def test_an_environment_for_a_card_runs_where_it_is(tree: HostTree) -> None:
    assert _asked(_FOR_H100, _with_card(tree, "550.54.15")) == ()


def test_an_environment_for_a_card_is_refused_where_there_is_none(tree: HostTree) -> None:
    assert _codes(_asked(_FOR_H100, host(tree))) == [("error", "card-needed")]


def test_a_card_without_a_driver(tree: HostTree) -> None:
    tree.card(Card(address="0000:18:00.0", driver=None))
    assert _codes(_asked(_FOR_H100, host(tree))) == [("error", "driver-needed")]


@pytest.mark.parametrize(
    ("driver", "code"),
    [
        ("550.54.14", []),
        ("550.54.15", []),
        ("550.40.07", ["driver-out-of-range"]),
        ("550.90.07", ["driver-out-of-range"]),
        ("580.95.05", []),
    ],
)
def test_the_recipes_range_of_drivers(tree: HostTree, driver: str, code: list[str]) -> None:
    found = _asked(_FOR_H100, _with_card(tree, driver))
    assert [one.code for one in found] == code


def test_branches_and_the_floor_of_the_facts(tree: HostTree) -> None:
    seen = _with_card(tree, "570.86.15")
    only = replace(_FOR_H100, branches=_need("R550,R580"))
    assert _codes(_asked(only, seen)) == [("error", "driver-out-of-range")]
    floor = replace(_FOR_H100, floor=Need(value="580.65.06", origin="facts: CUDA 13.0"))
    (found,) = _asked(floor, seen)
    assert (found.code, found.why) == ("driver-too-old", "facts: CUDA 13.0")


@pytest.mark.parametrize(
    ("codes", "found"),
    [
        ("pytorch: sm_80 sm_90", []),
        ("pytorch: sm_80", [("error", "no-gpu-code")]),
        ("pytorch: sm_80 compute_80", [("note", "code-compiled-first")]),
        ("pytorch: sm_90; jax: sm_80", [("error", "no-gpu-code")]),
        ("pytorch: sm_90a", []),
    ],
)
def test_code_for_the_card(tree: HostTree, codes: str, found: list[tuple[str, str]]) -> None:
    seen = _with_card(tree, "550.54.15")
    assert _codes(_asked(replace(_FOR_H100, codes=_need(codes)), seen)) == found


def test_code_for_one_capability_alone_is_for_no_other(tree: HostTree) -> None:
    seen = _with_card(tree, "580.95.05", capability="10.3")
    needs = replace(_FOR_H100, codes=_need("pytorch: sm_100a"))
    assert _codes(_asked(needs, seen)) == [("error", "no-gpu-code")]


def test_one_card_of_several_without_code_is_a_warning(tree: HostTree) -> None:
    tree.driver("550.54.15")
    seen = host(tree, nvml(gpu(0), gpu(1, "7.0"), driver="550.54.15"))
    (found,) = _asked(_FOR_H100, seen)
    assert (found.severity, found.code) == (Severity.WARNING, "no-gpu-code")
    assert found.where == "demo: GPU 1 (NVIDIA H100 80GB HBM3)"


def test_what_is_not_known_of_the_environment_is_a_warning(tree: HostTree) -> None:
    unknown = replace(_FOR_H100, codes=UNKNOWN)
    found = _asked(unknown, _with_card(tree, "550.54.15"))
    assert _codes(found) == [("warning", "need-unknown")]
    other = _asked(unknown, _with_card(HostTree(tree.root / "b").system(), "550.54.15", "8.0"))
    assert _codes(other) == [("warning", "card-not-named"), ("warning", "need-unknown")]


def test_what_is_not_known_of_the_host_is_a_warning(tree: HostTree) -> None:
    seen = _with_card(tree, "550.54.15")
    machine = replace(seen.machine, system=replace(seen.machine.system, glibc=NoAnswer("x")))
    found = _asked(_FOR_H100, replace(seen, machine=machine))
    assert _codes(found) == [("warning", "host-unread")]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"glibc": _need(">=2.34")}, ("error", "glibc-too-old")),
        ({"platform": _need("linux-aarch64")}, ("error", "platform-differs")),
        ({"cpu": _need("x86_64_v4")}, None),
        ({"cpu": _need("zen4")}, ("warning", "cpu-not-judged")),
        ({"memory": _need(str(4 << 40))}, ("warning", "memory-short")),
        ({"disk": _need(str(1 << 60))}, ("warning", "disk-short")),
        ({"memory": _need(str(1 << 30))}, None),
    ],
)
def test_processor_glibc_and_memory(
    tree: HostTree, change: dict[str, Need], code: tuple[str, str] | None
) -> None:
    found = _codes(_asked(replace(_FOR_CPU, **change), host(tree)))
    assert found == ([] if code is None else [code])


def test_files_that_are_here_need_no_room(tree: HostTree) -> None:
    needs = replace(_FOR_CPU, disk=_need(str(1 << 60)))
    assert admit(needs, host(tree), facts(), name="demo", is_here=True) == ()


def test_a_processor_of_a_lower_level(tree: HostTree) -> None:
    text = (tree.root / "proc/cpuinfo").read_text()
    tree.file("proc/cpuinfo", text.replace("avx512f", ""))
    found = _asked(replace(_FOR_CPU, cpu=_need("x86_64_v4")), host(tree))
    assert _codes(found) == [("error", "cpu-too-old")]


def test_needs_follow_from_cards_and_frameworks() -> None:
    subject = Subject(
        name="demo",
        platform="linux-64",
        gpus=("h100", "a100"),
        parts=(Part(kind="pypi", name="torch", version="2.4.0"),),
    )
    unknown = Needs(driver=UNKNOWN, gpus=_need("h100"), glibc=UNKNOWN, cuda=UNKNOWN)
    found = complete(unknown, subject, load(only=("cuda", "gpus", "pytorch")))
    assert found.capabilities.value == "9.0,8.0"
    assert found.floor.value == "525.60.13"
    assert found.codes.value is not None
    assert found.codes.value.startswith("pytorch: sm_50 ")
    assert found.codes.origin == "facts: pytorch 2.4.0 pypi"
    named = complete(replace(unknown, codes=_need("pytorch: sm_90")), subject, facts())
    assert named.codes.value == "pytorch: sm_90", "what is known stays"


def test_needs_of_a_conda_build_that_no_table_has_are_unknown() -> None:
    build = "py3.10_cuda12.4_cudnn9.1.0_0"
    subject = Subject(
        name="demo",
        platform="linux-64",
        gpus=("h100",),
        parts=(Part(kind="conda", name="pytorch", version="2.4.0", build=build),),
    )
    unknown = Needs(driver=UNKNOWN, gpus=_need("h100"), glibc=UNKNOWN, cuda=UNKNOWN)
    found = complete(unknown, subject, facts())
    assert found.codes == UNKNOWN
    assert found.floor.value == "525.60.13"
