"""What is written is read back; what is damaged is refused with its place."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from unit.lock.strategies import locks, texts

from envbuild.errors import LockError
from envbuild.lock import files, yaml_text
from envbuild.lock.model import Lock, LockTexts, PlatformLock
from envbuild.packages import CondaPackage, PipPackage

_A, _B = "a" * 64, "b" * 64
CONDA_FORGE = "https://conda.anaconda.org/conda-forge"


def sample() -> Lock:
    return Lock(
        name="h100-pt24",
        solve_digest="1e" * 32,
        cutoff=datetime(2026, 12, 1, 12, tzinfo=UTC),
        channels=("nvidia/label/cuda-12.4.0", "conda-forge"),
        platforms=(
            PlatformLock(
                platform="linux-64",
                conda=(
                    CondaPackage(
                        name="cuda-nvtx",
                        version="12.4.99",
                        build="0",
                        url="https://conda.anaconda.org/nvidia/label/cuda-12.4.0/linux-64/"
                        "cuda-nvtx-12.4.99-0.tar.bz2",
                        md5="0" * 32,
                        size=57513,
                    ),
                    CondaPackage(
                        name="python",
                        version="3.10",
                        build="h1234567_0_cpython",
                        url=f"{CONDA_FORGE}/linux-64/python-3.10-h1234567_0_cpython.conda",
                        sha256=_A,
                        md5="1" * 32,
                        depends=("__glibc >=2.17,<3.0.a0", "openssl", "tzdata"),
                    ),
                ),
                pip=(
                    PipPackage(name="accelerate", version="1.0", hashes=(_A, _B), via=("recipe",)),
                    PipPackage(
                        name="ours",
                        version="1.2.post1",
                        hashes=(_B,),
                        index="company",
                        via=("accelerate", "recipe"),
                    ),
                ),
            ),
        ),
        asked=(("conda", '["numpy <2"]'), ("python", '"3.10"')),
        uncut_indexes=("company",),
        compiler="gcc 12",
        link_scripts=("ours",),
    )


def universal() -> Lock:
    pip = (
        PipPackage(
            name="numpy",
            version="2.4.6",
            hashes=(_A,),
            marker='python_version < "3.12"',
            via=("recipe",),
        ),
        PipPackage(
            name="numpy",
            version="2.5.4",
            hashes=(_B,),
            marker='python_version >= "3.12"',
            via=("recipe",),
        ),
    )
    return Lock(
        name="quickstart",
        solve_digest=_A,
        cutoff=datetime(2026, 12, 1, tzinfo=UTC),
        channels=("host",),
        platforms=(
            PlatformLock(platform="linux-64", conda=(), pip=pip),
            PlatformLock(platform="linux-aarch64", conda=(), pip=pip),
        ),
        host_python=">=3.11,<3.15",
    )


@given(locks())
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read_back(lock: Lock) -> None:
    texts = files.dumps(lock)
    assert files.loads(texts, source="x") == lock
    assert files.dumps(files.loads(texts, source="x")) == texts


@given(locks())
@settings(max_examples=10, deadline=None)
def test_every_reader_of_yaml_sees_text(lock: Lock) -> None:
    document = yaml.safe_load(files.dumps(lock).files["conda-lock.yml"])
    rows = document["package"]
    custom = document["metadata"]["custom_metadata"]
    assert all(isinstance(value, str) for value in custom.values())
    for row in rows:
        values = [row["name"], row["version"], row["url"], *row["hash"].values()]
        values += [*row["dependencies"], *row["dependencies"].values()]
        assert all(isinstance(value, str) for value in values)
        assert row["optional"] is False


@given(texts)
def test_a_scalar_is_the_text_it_was(text: str) -> None:
    assert yaml.safe_load(yaml_text.scalar(text)) == text
    assert yaml_text.read(yaml_text.scalar(text), source="x").text() == text


def test_the_whole_text(golden: Callable[[str, str], None]) -> None:
    for name, text in files.dumps(sample()).files.items():
        golden(f"lock/h100-pt24/{name}", text)


def test_the_whole_text_on_the_hosts_python(golden: Callable[[str, str], None]) -> None:
    texts = files.dumps(universal()).files
    assert texts["requirements.linux-64.txt"] == texts["requirements.linux-aarch64.txt"]
    for name in ("conda-lock.yml", "requirements.linux-64.txt"):
        golden(f"lock/quickstart/{name}", texts[name])


def test_a_lock_without_md5_is_not_written() -> None:
    package = CondaPackage(
        name="x", version="1", build="0", url="file:///c/noarch/x-1-0.conda", sha256=_A
    )
    half = PlatformLock(platform="linux-64", conda=(package,), pip=())
    lock = Lock(
        name="x",
        solve_digest=_A,
        cutoff=datetime(2026, 1, 1, tzinfo=UTC),
        channels=(),
        platforms=(half,),
    )
    with pytest.raises(LockError, match="no md5"):
        files.dumps(lock)


CONDA_DAMAGE = {
    "empty": (".+", "", r"conda-lock\.yml: the file is empty"),
    "no YAML": (r"version: 1", "version: [1", r"conda-lock\.yml:\d+: no YAML"),
    "a control character": (r"# The lock", "\x00", r"conda-lock\.yml: no YAML"),
    "a list": (r".+", "- a\n", r"conda-lock\.yml:1: expected a mapping"),
    "another version": ("version: 1", "version: 7", r"yml:4: version: only version 1"),
    "a missing key": ("    cutoff: .+\n", "", r"the key 'cutoff' is missing"),
    "a key twice": ("    compiler:", "    cutoff: x\n    compiler:", r"'cutoff' stands twice"),
    "an unknown key": ("package:", "packages: []\npackage:", r"yml:\d+: unknown key 'packages'"),
    "another tool's": (r"  custom_metadata:\n(    .+\n)+", "", r"not a lock of envbuild"),
    "a newer format": ('lock_format: "1"', 'lock_format: "9"', r"lock format 1"),
    "a digest": ("md5: .+", "md5: 12", r"yml:\d+: package\[0\]\.hash\.md5: damaged"),
    "another sha256": ("sha256: .+", "sha256: XYZ", r"hash\.sha256: damaged"),
    "an instant": ("cutoff: .+", "cutoff: soon", r"cutoff: expected an instant"),
    "an instant without zone": ("cutoff: .+", "cutoff: 2026-01-01T00:00:00", r"no time zone"),
    "a size": ('"57513"', "-5", r"expected a number of bytes"),
    "pip in it": ("manager: conda", "manager: pip", r"only conda packages"),
    "another platform": ("  - linux-64", "  - win-64", r"'win-64' is no platform"),
    "an unlisted platform": ("  - linux-64", "  - linux-aarch64", r"linux-64 has packages but"),
    "an address": ("url: .+tar.bz2", "url: x", r"package\[0\]\.url: the address is not one"),
    "another name": ("- name: python", "- name: pyth", r"does not begin with pyth-3.10-"),
    "a package twice": (
        r"(?s)(- name: python.+)",
        r"\1\1",
        r"package\[2\]: python stands twice for linux-64",
    ),
    "a list for text": ("name: h100-pt24", "name: [a]", r"custom_metadata\.name: expected text"),
    "text for a list": ("package:\n(.|\n)+", "package: a\n", r"package: expected a list"),
    "a content hash": ("linux-64: .+", "linux-64: abc", r"content_hash\.linux-64: not the solve"),
    "python": ("    compiler", "    python: conda\n    compiler", r"python: expected `host RANGE`"),
    "a conflict": ("package:", "<<<<<<< HEAD\npackage:", r"yml:\d+: a conflict marker of git \(<<"),
    "a conflict's middle": ("package:", "=======\npackage:", r"a conflict marker of git \(=="),
}


@pytest.mark.parametrize("name", CONDA_DAMAGE)
def test_a_damaged_conda_lock_is_refused(name: str) -> None:
    old, new, expected = CONDA_DAMAGE[name]
    texts = files.dumps(sample()).files
    text = texts["conda-lock.yml"]
    changed = new if old == ".+" else re.sub(old, new, text, count=1)
    assert changed != text
    with pytest.raises(LockError, match=expected) as caught:
        files.loads(LockTexts(files={**texts, "conda-lock.yml": changed}), source="locks/x")
    assert caught.value.exit_code == 3
    assert caught.value.hint
    assert "locks/x/conda-lock.yml" in caught.value.source


REQUIREMENTS_DAMAGE = {
    "a version": ("accelerate==1.0", "accelerate==1.1", r"txt: its lines are not those that were"),
    "a hash": ("a{64}", "c" * 64, r"txt:\d+: the hashes of accelerate are not in order"),
    "an md5": (r"--hash=sha256:a{64}", "--hash=md5:" + "0" * 32, r"txt:\d+: expected `    --hash"),
    "an option": ("# Written", "--index-url http://localhost\n# Written", r"txt:2: only comments"),
    "an option below": ("ours==", "--pre\nours==", r"txt:\d+: expected `name==version"),
    "a range": ("ours==1.2.post1", "ours>=1", r"txt:\d+: expected `name==version"),
    "no header": ("(?s)^.+?\n\n", "", r"txt:1: only comments may stand"),
    "a package away": (r"(?s)ours.+", "", r"its lines are not those"),
    "cut short": (
        r" \\\n    --hash=sha256:b{64}\n    # via recipe(.|\n)+",
        r" \\\n",
        r"txt:\d+: expected `    --hash=sha256",
    ),
    "twice": (r"(?s)(ours.+)", r"\1\1", r"ours stands twice or out of order"),
    "conflict": ("ours", ">>>>>>> other\nours", r"txt:\d+: a conflict marker of git"),
    "a comment": ("via recipe", "via somebody", r"its lines are not those"),
    "no empty line": (r"\n\n", "\n", r"only comments"),
    "only comments": (r"\n\n(.|\n)+", "\n", r"txt:\d+: the empty line below the header is missing"),
}


@pytest.mark.parametrize("name", REQUIREMENTS_DAMAGE)
def test_a_requirements_file_edited_by_hand_is_refused(name: str) -> None:
    old, new, expected = REQUIREMENTS_DAMAGE[name]
    texts = files.dumps(sample()).files
    text = texts["requirements.linux-64.txt"]
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    with pytest.raises(LockError, match=expected):
        files.loads(LockTexts(files={**texts, "requirements.linux-64.txt": changed}), source="x")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LockError, match=r"conda-lock\.yml: there is no such file"):
        files.read(tmp_path)
    (tmp_path / "conda-lock.yml").write_text(files.dumps(sample()).files["conda-lock.yml"])
    with pytest.raises(LockError, match=r"requirements\.linux-64\.txt: there is no such file"):
        files.read(tmp_path)


def test_a_folder_is_read(tmp_path: Path) -> None:
    for name, text in files.dumps(sample()).files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "notes.txt").write_text("not ours")
    assert files.read(tmp_path) == sample()


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "conda-lock.yml").write_bytes(b"version: 1\n\xff\n")
    with pytest.raises(LockError, match=r"conda-lock\.yml:2: not UTF-8"):
        files.read(tmp_path)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "conda-lock.yml").mkdir()
    with pytest.raises(LockError, match="cannot be read: Is a directory"):
        files.read(tmp_path)


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "&a [*a]", "{[a]: b}"])
def test_hostile_yaml_is_refused(text: str) -> None:
    with pytest.raises(LockError):
        files.loads(LockTexts(files={"conda-lock.yml": text}), source="x")
