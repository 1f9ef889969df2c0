"""Programs that root runs and others can change."""

import os
from pathlib import Path

import pytest
from unit.units.rendering import rendered

from envbuild.units import trust
from envbuild.units.model import UnitFile

_CARD = "services: {a: {exec: x, gpu: 1}}"
_NONE = "services: {a: {exec: x}}"
_ROOT = "services: {a: {exec: x, user: root}}"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes folders of root's")


def _files(text: str, prefix: Path) -> tuple[UnitFile, ...]:
    """Return units whose programs lie in a generation."""
    texts = rendered(text)
    (place,) = {
        word.partition("/.envbuild/")[0].lstrip("+")
        for body in texts.values()
        for line in body.splitlines()
        if line.startswith("ExecCondition=")
        for word in line.partition("=")[2].split()
        if "/.envbuild/" in word
    }
    return tuple(
        UnitFile(name=name, text=body.replace(place, str(prefix))) for name, body in texts.items()
    )


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "store/generation"
    made.mkdir(parents=True)
    return made


@pytest.mark.parametrize("text", [_CARD, _ROOT])
@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o775, 0), (0o755, 1234)])
@as_root
def test_a_folder_that_others_can_change_is_an_error(
    prefix: Path, text: str, mode: int, owner: int
) -> None:
    prefix.parent.chmod(mode)
    os.chown(prefix.parent, owner, 0 if owner else 1234)
    (found,) = trust.judge(_files(text, prefix), prefix)
    assert (found.code, found.where) == ("root-runs-others", str(prefix.parent))
    assert "a.service" in found.what


@pytest.mark.parametrize("text", [_CARD, _ROOT])
@as_root
def test_what_root_alone_can_change_is_fine(prefix: Path, text: str) -> None:
    assert trust.judge(_files(text, prefix), prefix) == ()


def test_a_service_that_runs_nothing_as_root_is_no_matter(prefix: Path) -> None:
    prefix.parent.chmod(0o777)
    assert trust.judge(_files(_NONE, prefix), prefix) == ()
