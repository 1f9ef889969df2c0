"""What every test can use: golden files, programs that may be missing, and the order of trees."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, and fails no test.
settings.register_profile("any pace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any pace")

_TREES = ("unit", "integration", "system", "gpu")
_GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/golden from what is seen now"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run two tests per core: many wait for servers that stall, locks and machines."""
    return 2 * len(os.sched_getaffinity(0))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the quick trees first, and in each the slow tests last."""
    here = config.rootpath / "tests"

    def place(item: pytest.Item) -> tuple[int, bool]:
        tree = item.path.relative_to(here).parts[0]
        known = _TREES.index(tree) if tree in _TREES else len(_TREES)
        return known, item.get_closest_marker("slow") is not None

    items.sort(key=place)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out tests of a GPU where there is none."""
    if item.get_closest_marker("gpu") and not Path("/dev/nvidiactl").exists():
        pytest.skip("no NVIDIA device (/dev/nvidiactl)")


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, str], None]:
    """Return what compares a text with `tests/golden/NAME`; the temporary root becomes `TMP`."""

    def compare(name: str, text: str) -> None:
        seen = text.replace(str(tmp_path), "TMP")
        path = _GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(seen)
        assert path.is_file(), f"{path} is missing: pytest --update-golden"
        assert seen == path.read_text()

    return compare


@pytest.fixture
def program() -> Callable[[str], str]:
    """Return what finds a program, or skips the test and names it."""

    def find(name: str) -> str:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not installed")
        return found

    return find
