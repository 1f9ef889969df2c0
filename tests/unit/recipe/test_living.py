import json
from pathlib import Path
from typing import Any

import pytest

from envbuild.errors import RecipeError
from envbuild.recipe.living import Living, load

ALIAS = "https://conda.anaconda.org"
SITE = "lib/python3.11/site-packages"


class Prefix:
    """A folder that looks like an environment."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def conda(self, name: str, version: str, channel: str = "conda-forge", **more: Any) -> None:  # noqa: ANN401
        address = channel if "://" in channel or not channel else f"{ALIAS}/{channel}/linux-64"
        record = {"name": name, "version": version, "build": "0", "channel": address, **more}
        self.write(f"conda-meta/{name}-{version}-0.json", json.dumps(record))

    def wheel(self, name: str, version: str, direct: dict[str, Any] | None = None) -> str:
        folder = f"{SITE}/{name}-{version}.dist-info"
        self.write(f"{folder}/METADATA", f"Name: {name}\nVersion: {version}\n\ntext\n")
        if direct is not None:
            self.write(f"{folder}/direct_url.json", json.dumps(direct))
        return f"{folder}/METADATA"

    def said(self) -> list[tuple[str, str]]:
        return [(finding.where, finding.what) for finding in load(self.root).findings]


@pytest.fixture
def prefix(tmp_path: Path) -> Prefix:
    return Prefix(tmp_path)


def test_a_conda_environment_without_a_history_is_pinned_as_it_is(prefix: Prefix) -> None:
    prefix.conda("python", "3.11.7")
    prefix.conda("numpy", "1.26.4", files=[prefix.wheel("numpy", "1.26.4")])
    prefix.conda("cuda-version", "12.4", "nvidia/label/cuda-12.4.0")
    prefix.wheel("Rich_Text", "1.0")
    prefix.wheel("pip", "23.2")
    assert load(prefix.root) == Living(
        python="3.11.7",
        cuda="12.4",
        channels=["conda-forge", "nvidia/label/cuda-12.4.0"],
        conda=["cuda-version 12.4", "numpy 1.26.4"],
        pypi=["rich-text ==1.0"],
    )


@pytest.mark.parametrize(
    ("history", "wanted"),
    [
        ("# update specs: ['numpy=1.26', 'zlib']\n", ["numpy", "zlib"]),
        ('# update specs: ["numpy[version=\'>=1\']", "python"]\n', ["numpy"]),
        ("# install specs: numpy >=1,zlib\n# remove specs: ['zlib']\n", ["numpy"]),
        ("# update specs: ['numpy']\n# neutered specs: ['zlib']\n", ["numpy"]),
        ("# update specs: ['conda-forge::zlib=1']\n", ["zlib"]),
        ("==> 2026-12-01 12:00:00 <==\n# cmd: conda create\n", ["libz", "numpy", "zlib"]),
    ],
)
def test_what_was_asked_for_is_taken(prefix: Prefix, history: str, wanted: list[str]) -> None:
    for name in ("python", "numpy", "libz", "zlib"):
        prefix.conda(name, "1.0")
    prefix.write("conda-meta/history", history)
    found = load(prefix.root)
    assert found.conda == [f"{name} 1.0" for name in wanted]
    assert found.asked == ("specs" in history)


def test_records_say_what_was_asked_for(prefix: Prefix) -> None:
    prefix.conda("numpy", "1.0", requested_spec="numpy >=1")
    prefix.conda("zlib", "1.0", requested_spec="")
    found = load(prefix.root)
    assert (found.conda, found.asked) == (["numpy 1.0"], True)


def test_channels_that_a_recipe_cannot_name(prefix: Prefix) -> None:
    prefix.conda("a", "1.0", "file:///home/anna/channel")
    prefix.conda("b", "1.0", "https://repo.test/pkgs/main/linux-64")
    prefix.conda("c", "1.0", "https://mirror.test/mine/noarch")
    prefix.conda("d", "1.0", "https://anna:secret@mirror.test/x")
    prefix.conda("e", "1.0", "")
    found = load(prefix.root)
    assert (found.channels, found.conda) == (["https://mirror.test/mine"], ["c 1.0"])
    assert [finding.where for finding in found.findings] == [
        "a 1.0", "b 1.0", "d 1.0", "e 1.0",
    ]  # fmt: skip
    assert "file:///home/anna/channel" in found.findings[0].what
    assert "secret" not in str(found.findings)


def test_what_pip_put_beside_conda_s_package_is_conda_s(prefix: Prefix) -> None:
    prefix.conda("python", "3.11.7")
    prefix.conda("numpy", "1.26.4", files=[prefix.wheel("numpy", "1.26.4")])
    prefix.wheel("numpy", "2.0.0")
    assert load(prefix.root).pypi == []
    assert prefix.said() == [
        ("numpy", "pip installed numpy 2.0.0 beside conda's numpy: conda's is taken")
    ]


def test_variables_are_named(prefix: Prefix) -> None:
    prefix.conda("python", "3.11.7")
    prefix.write("conda-meta/state", '{"version": 1, "env_vars": {"MODEL": "x"}}')
    assert prefix.said() == [
        ("conda-meta/state", "the variable MODEL of the environment was left out")
    ]


def test_one_of_ours_on_the_machine_s_python_stays_on_it(prefix: Prefix) -> None:
    prefix.conda("python", "3.11.7", "file:///store/cache/host", build="h0_host")
    found = load(prefix.root)
    assert (found.host, found.python, found.channels) == (True, "3.11", ["host"])


@pytest.mark.parametrize(
    ("direct", "reason"),
    [
        (
            {"url": "file:///src/app", "dir_info": {"editable": True}},
            "it is an editable install of file:///src/app",
        ),
        (
            {"url": "file:///src/app-1.0-py3-none-any.whl", "archive_info": {}},
            "it was installed from file:///src/app-1.0-py3-none-any.whl, on this machine",
        ),
        (
            {
                "url": "https://anna:secret@git.test/app",
                "vcs_info": {"vcs": "git", "commit_id": "0123456789abcdef"},
            },
            "it comes from git https://…@git.test/app at 0123456789ab",
        ),
        (
            {"url": "https://files.test/app.whl", "archive_info": {}},
            "it was installed from https://files.test/app.whl, not from an index",
        ),
    ],
)
def test_what_no_index_serves(prefix: Prefix, direct: dict[str, Any], reason: str) -> None:
    prefix.write("pyvenv.cfg", "version = 3.11.2\n")
    prefix.wheel("app", "1.0", direct)
    assert load(prefix.root).pypi == []
    assert prefix.said()[0][0] == "app 1.0"
    assert "secret" not in prefix.said()[0][1]
    assert prefix.said()[0][1].replace("***", "…") == reason


@pytest.mark.parametrize("key", ["version = 3.11.2", "version_info = 3.11.2"])
def test_a_venv_is_on_the_machine_s_python(prefix: Prefix, key: str) -> None:
    prefix.write("pyvenv.cfg", f"home = /usr/bin\n{key}\ninclude-system-site-packages = true\n")
    prefix.wheel("torch", "2.4.0+cu124")
    prefix.wheel("nvidia_cuda_runtime_cu12", "12.4.127")
    prefix.write(f"{SITE}/old.egg-link", "/src/old\n.\n")
    prefix.write(f"{SITE}/legacy-1.0.egg-info", "Name: legacy\nVersion: 1.0\n")
    prefix.write(f"{SITE}/empty-1.0.dist-info/METADATA", "")
    found = load(prefix.root)
    assert (found.host, found.python, found.cuda) == (True, "3.11", "12.4")
    assert found.pypi == ["legacy ==1.0", "nvidia-cuda-runtime-cu12 ==12.4.127", "torch ==2.4.0"]
    assert [finding.where for finding in found.findings] == [
        "pyvenv.cfg", "empty-1.0.dist-info", "torch 2.4.0+cu124", "old",
    ]  # fmt: skip
    assert {finding.code for finding in found.findings} == {"not-carried"}


def test_what_is_no_environment(prefix: Prefix) -> None:
    with pytest.raises(RecipeError, match="is no environment"):
        load(prefix.root)
    prefix.write("conda-meta/a-1-0.json", "{")
    with pytest.raises(RecipeError, match="cannot be read"):
        load(prefix.root)
