"""The scripts around compilers, run."""

import subprocess
from pathlib import Path

from toolchains import cuda, tools

from envbuild.rebuild import variables
from envbuild.rebuild.variables import Layout

_SEEN = Layout(root=Path("/seen"))


def _told(script: Path, *words: str) -> list[str]:
    done = subprocess.run([script, *words], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def _teller(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    path.chmod(0o755)
    return path


def test_every_compiler_gets_a_seed_of_its_output_and_mapped_paths(tmp_path: Path) -> None:
    made = tools(_teller(tmp_path / "real/gcc"))
    layout = Layout(root=tmp_path / "build")
    variables.write_scripts(layout, _SEEN, made, jobs=3, ninja=None, cache=None)
    words = ["-c", "a b.c", "-o", "out dir/a.o"]
    told = _told(layout.scripts / "gcc", *words)
    assert told == [
        "-ffile-prefix-map=/seen=/usr/src/envbuild",
        "-frandom-seed=out dir/a.o",
        *words,
    ]
    assert _told(layout.scripts / "c++", "-ox.o")[1] == "-frandom-seed=x.o"


def test_ninja_starts_as_many_as_fit_where_nobody_says_so(tmp_path: Path) -> None:
    layout = Layout(root=tmp_path / "build")
    ninja = _teller(tmp_path / "real/ninja")
    made = tools(_teller(tmp_path / "real/gcc"))
    variables.write_scripts(layout, _SEEN, made, jobs=3, ninja=ninja, cache=None)
    assert _told(layout.scripts / "ninja", "-j5", "all") == ["-j3", "-j5", "all"]


def test_nvcc_keeps_its_intermediate_names_and_takes_our_host_compiler(tmp_path: Path) -> None:
    home = tmp_path / "cuda"
    _teller(home / "bin/nvcc")
    (home / "include").mkdir()
    layout = Layout(root=tmp_path / "build")
    layout.temporary.mkdir(parents=True)
    made = tools(_teller(tmp_path / "real/gcc"), cuda=cuda(home))
    variables.write_scripts(layout, layout, made, jobs=3, ninja=None, cache=None)
    told = _told(layout.scripts / "nvcc", "-c", "a.cu")
    assert told[0] == f"--compiler-bindir={layout.scripts}/g++"
    assert told[1:3] == ["--keep", "--keep-dir"]
    assert Path(told[3]).parent == layout.temporary
    assert Path(told[3]).is_dir()
    assert told == _told(layout.scripts / "nvcc", "-c", "a.cu")
    assert told[3] != _told(layout.scripts / "nvcc", "-c", "b.cu")[3]
    assert _told(layout.scripts / "nvcc", "-ccbin", "x")[0] == "--keep"
    assert _told(layout.scripts / "nvcc", "--version") == ["--version"]
    assert (layout.cuda / "include").resolve() == home / "include"
