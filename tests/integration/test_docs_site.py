"""The site: it is built without a warning, and a broken link or anchor ends the build."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]

pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install -e '.[docs]'")


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(_ROOT / "docs", tmp_path / "copy/docs")
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(_ROOT / name, tmp_path / "copy" / name)
    return tmp_path / "copy"


def test_every_page_is_built(tmp_path: Path) -> None:
    done = build(_ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    for page in ("tutorial", "commands/create", "recipe-keys", "errors/6", "findings/weak-hash"):
        assert (tmp_path / page / "index.html").is_file()
    assert "How to allow it" in (tmp_path / "findings/weak-hash/index.html").read_text()
    assert "<!-- table" not in (tmp_path / "findings/index.html").read_text()
    assert not list(tmp_path.rglob("*.py"))


@pytest.mark.parametrize("link", ["nowhere.md", "store.md#nowhere"])
def test_a_link_that_leads_nowhere_ends_the_build(link: str, copy: Path, tmp_path: Path) -> None:
    page = copy / "docs/faq.md"
    page.write_text(f"{page.read_text()}\n[a link]({link})\n")
    done = build(copy, tmp_path / "site")
    assert done.returncode == 1
    assert link in done.stderr
