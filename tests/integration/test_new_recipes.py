"""`envbuild new`: what it writes locks as it is, and what it asks on a terminal."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from envbuild.cli.main import main
from envbuild.recipe.load import load

HASH = "7aada352fb0c7f5538c4fafeddf314d3a6a92ee8e2b1de70482329e42de70301"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENVBUILD_STORE", str(tmp_path / "store"))
    return tmp_path


@pytest.mark.network
def test_a_new_recipe_locks_as_it_is(folder: Path) -> None:
    assert main(["new", "tools", "--host", "--pypi", "rich >=13"]) == 0
    assert main(["lock", "tools"]) == 0
    assert main(["lock", "--check", "tools"]) == 0
    assert "rich==" in next((folder / "lockfiles/tools").glob("requirements.*.txt")).read_text()


@pytest.mark.network
def test_a_rendered_file_locks_with_the_hash_it_had(folder: Path) -> None:
    (folder / "requirements.txt").write_text(f"flit-core === 3.9.0 \\\n  --hash=sha256:{HASH}\n")
    assert main(["new", "old", "--host", "--from", "requirements.txt"]) == 0
    assert main(["lock", "old"]) == 0
    assert HASH in next((folder / "lockfiles/old").glob("requirements.*.txt")).read_text()


@pytest.mark.network
@pytest.mark.slow
def test_a_living_venv_becomes_a_recipe_that_locks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "old"], check=True)
    (folder / "mine").mkdir()
    (folder / "mine/pyproject.toml").write_text(
        '[build-system]\nrequires = ["flit-core"]\nbuild-backend = "flit_core.buildapi"\n'
        '[project]\nname = "mine"\nversion = "1.0"\ndescription = "x"\n'
    )
    (folder / "mine/mine.py").write_text("")
    pip = [f"{folder}/old/bin/python", "-m", "pip", "--quiet", "install"]
    subprocess.run([*pip, "six==1.16.0", "idna==3.7"], check=True)
    subprocess.run([*pip, "-e", "./mine"], check=True)
    assert main(["new", "moved", "--from", "old"]) == 0
    error = capsys.readouterr().err
    what = f"mine 1.0: it is an editable install of file://{folder}/mine"
    assert f"warning: {what} [not-carried]" in error
    assert f"#   {what}\n" in (folder / "recipes/moved.yaml").read_text()
    recipe = load("moved", [folder / "recipes"]).recipe
    assert recipe.channels == ("host",)
    assert recipe.pypi[:1] == ("idna ==3.7",)
    assert "six ==1.16.0" in recipe.pypi
    assert main(["lock", "moved"]) == 0
    locked = next((folder / "lockfiles/moved").glob("requirements.*.txt")).read_text()
    assert "six==1.16.0" in locked


def test_questions_on_a_terminal(folder: Path) -> None:
    terminal, end = pty.openpty()
    words = [sys.executable, "-m", "envbuild", "new", "asked"]
    child = subprocess.Popen(words, stdin=end, stdout=end, stderr=end)
    os.close(end)
    seen = b""
    for answer in ("host", "3.11", "jax", "h100", "13.0"):
        while not seen.endswith(b": "):
            assert select.select([terminal], [], [], 30)[0], seen
            seen += os.read(terminal, 1000)
        seen = b""
        os.write(terminal, f"{answer}\n".encode())
        while b"\n" not in seen:
            seen += os.read(terminal, 1)
    while select.select([terminal], [], [], 30)[0]:
        try:
            os.read(terminal, 1000)
        except OSError:
            break
    os.close(terminal)
    assert child.wait(30) == 0
    recipe = load("asked", [folder / "recipes"]).recipe
    assert recipe.pypi == ("jax[cuda13]",)
    assert (recipe.python, recipe.target.gpus) == ("3.11", ("h100",))
