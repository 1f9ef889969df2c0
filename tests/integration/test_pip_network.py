"""The PyPI half against PyPI itself, and through mirrors of it on localhost."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from integration.index_server import Proxy, default_index, serving
from integration.pip_solving import Solver, codes, conda, one, pins

from envbuild.cli.context import Here
from envbuild.errors import NoSolution
from envbuild.solve.half import PipHalf
from envbuild.tools import index_settings

pytestmark = pytest.mark.network

CUTOFF = datetime(2026, 11, 1, tzinfo=UTC)
TORCH = ("pytorch=2.4.0", "numpy=1.26.4", "sympy=1.13.3", "mpmath=1.4.1", "jinja2=3.1.6")


@pytest.fixture(scope="session")
def solver(tmp_path_factory: pytest.TempPathFactory) -> Solver:
    return Solver(
        folder=tmp_path_factory.mktemp("pypi"),
        index=Here().access.default_index,
        environment=index_settings.network_environment(os.environ),
    )


def test_beside_a_conda_pytorch(solver: Solver) -> None:
    half = solver.solve(
        "pypi: [transformers, accelerate]",
        half=conda(*TORCH, python="3.10.20"),
        cutoff=CUTOFF,
    )
    found = pins(half)
    assert found["transformers"] == "5.20.2"
    assert found["accelerate"] == "1.15.0", "accelerate 0.0.1 is what plain constraints lock"
    assert not [name for name in found if name.startswith("nvidia-")]
    assert found.keys().isdisjoint({"torch", "numpy", "sympy", "mpmath", "jinja2", "triton"})
    assert one(half, "tokenizers").via == ("transformers",)
    assert half.findings == ()


def test_what_does_not_go_with_a_conda_pytorch(solver: Solver) -> None:
    with pytest.raises(NoSolution) as caught:
        solver.solve("pypi: ['vllm==0.10.0']", half=conda(*TORCH, python="3.10.20"), cutoff=CUTOFF)
    assert "vllm==0.10.0 depends on torch==2.7.1 and torch==2.4.0 (conda)" in caught.value.details
    assert "recipes/r.yaml:3:8: vllm==0.10.0" in caught.value.details


def test_torch_from_pypi(solver: Solver) -> None:
    half = solver.solve(
        "pypi: ['torch==2.4.0', 'numpy<2', transformers, accelerate]", cutoff=CUTOFF
    )
    assert pins(half)["nvidia-cudnn-cu12"] == "9.1.0.70"
    assert all(len(package.hashes) <= 3 for package in half.packages)
    assert half.findings == ()


def test_numpy_for_all_pythons(solver: Solver) -> None:
    half = solver.universal("python: '>=3.11,<3.15'\npypi: [numpy]", cutoff=CUTOFF)
    assert [(each.name, each.version, each.marker) for each in half.packages] == [
        ("numpy", "2.4.6", None)
    ]
    assert half.findings == ()


def test_torch_for_a_python_that_it_has_no_wheel_for(solver: Solver) -> None:
    with pytest.raises(NoSolution, match=r"torch 2\.4\.0 has no wheel for Python 3\.13"):
        solver.universal("python: '>=3.11,<3.14'\npypi: ['torch==2.4.0']", cutoff=CUTOFF)


def test_two_mirrors_of_the_real_index(tmp_path: Path) -> None:
    """Each with settings of its own kind, as a user would have them, and another umask."""
    upstream = Here().access.default_index or default_index()
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with serving(
        one=Proxy(upstream=upstream, folder=folders[0]),
        two=Proxy(upstream=upstream, folder=folders[1]),
    ) as server:
        configured = folders[1] / "home/.config/uv/uv.toml"
        configured.parent.mkdir(parents=True)
        configured.write_text(f'[[index]]\nurl = "{server.url("two")}"\ndefault = true\n')
        settings: list[tuple[int, Mapping[str, str]]] = [
            (0o022, {"PIP_INDEX_URL": server.url("one"), "UV_EXCLUDE_NEWER": "2020-01-01"}),
            (0o077, {"HOME": str(folders[1] / "home"), "UV_PRERELEASE": "allow"}),
        ]
        halves = [_under(umask, environ, tmp_path) for umask, environ in settings]
        assert server.asked("/one/simple/requests")
        assert server.asked("/two/simple/requests")
    assert halves[0] == halves[1]
    assert "requests" in pins(halves[0])
    assert codes(halves[0]) == []


def _under(umask: int, environ: Mapping[str, str], folder: Path) -> PipHalf:
    old = os.umask(umask)
    try:
        here = Here({"HOME": "/nonexistent", **environ})
        solver = Solver(folder=folder / f"cache-{umask:o}", index=here.access.default_index)
        return solver.solve("pypi: [requests, pyyaml]", cutoff=CUTOFF)
    finally:
        os.umask(old)
