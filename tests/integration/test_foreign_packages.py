"""The packages that others made for their own tests, through our own commands."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from integration.channel_server import serve
from integration.creating import Creator, order
from integration.locking import envbuild
from integration.packages import FOREIGN, Made
from integration.test_create_wheels import packed

from envbuild.errors import EnvbuildError, FetchError, Refused
from envbuild.packages import CondaPackage
from envbuild.tools.conda_archives import local_path
from envbuild.tools.digests import of_file

__all__ = ["packed"]

pytestmark = pytest.mark.skipif(
    not FOREIGN.is_dir(), reason=f"{FOREIGN} is not there (ENVBUILD_TEST_PACKAGES)"
)

CHANNEL = "https://packages.invalid/main"
SAME = (
    "activate_deactivate_package",
    "buildstring",
    "clobber-a",
    "clobber-b",
    "clobber-fd-2",
    "clobber-fd-2-conflicting",
    "clobber-fd-3",
    "clobber-fd-rev-1",
    "clobber-fd-rev-2",
    "clobber-nested-2",
    "clobber-pynoarch-1",
    "clobber-pynoarch-2",
    "clobber-with-dir",
    "clobber-with-symlink-b",
    "cph_test_data",
    "dummy-trampoline-path",
    "empty",
    "failing_post_link",
    "foobar",
    "link-scripts",
    "other_dependent",
    "post_link-c",
    "post_link-d",
    "post_link_run_in_env_package",
    "pre_link_messages_package",
    "prefix-ignore",
    "ripgrep-completions",
    "sample_noarch_python",
    "small-executable",
)
OLD = ("clobber-directory-upgrade", "clobber-1", "clobber-2", "clobber-3")
NUMBERED = ("another_dependent", "dependent", "versioned")


def recipe(number: int) -> str:
    """Return a recipe of all that can be installed, in their first or second version."""
    specs = [*SAME, *(f"{name} ==0.{number}.0" for name in OLD)]
    specs += [f"{name} =={number}.0" for name in NUMBERED]
    specs += ["run_constrained"] if number > 1 else []  # it goes with the second versions alone
    lines = "".join(f"  - {json.dumps(spec)}\n" for spec in specs)
    return f"name: foreign\nchannels: ['{CHANNEL}']\npython: '3.11'\nconda:\n{lines}"


def index_of(python: CondaPackage) -> dict[str, Any]:
    """Return the foreign channel's index of linux-64 with a Python."""
    index: dict[str, Any] = json.loads((FOREIGN / "linux-64/repodata.json").read_bytes())
    archive = local_path(python.url)
    assert archive is not None
    found = of_file(archive, md5=True)
    index["packages.conda"][archive.name] = {
        "name": python.name,
        "version": python.version,
        "build": python.build,
        "build_number": 0,
        "depends": [],
        "subdir": "linux-64",
        "timestamp": 1_700_000_000_000,
        "sha256": found.sha256,
        "md5": found.md5,
        "size": found.size,
    }
    return index


@pytest.fixture
def project(
    tmp_path: Path, packed: CondaPackage, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    archive = local_path(packed.url)
    assert archive is not None
    with serve(FOREIGN) as server:
        text = json.dumps(index_of(packed)).encode()
        server.files["/linux-64/repodata.json"] = text
        server.files[f"/linux-64/{archive.name}"] = archive.read_bytes()
        monkeypatch.setenv("ENVBUILD_CHANNEL_MIRRORS", f"{CHANNEL}={server.url}")
        monkeypatch.setenv("ENVBUILD_STORE", str(tmp_path / "store"))
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        (tmp_path / "recipes").mkdir()
        yield tmp_path


def printed(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401
    return json.loads(capsys.readouterr().out)


def test_they_are_installed_verified_and_rolled_back(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, current = project / "recipes/foreign.yaml", project / "store/envs/foreign/current"
    made: list[dict[str, Any]] = []
    for number in (1, 2):
        file.write_text(recipe(number))
        assert envbuild("lock", "foreign", "--json") == 0
        (row,) = printed(capsys)["locks"]
        scripts = {one["where"] for one in row["findings"]}
        assert ("bin/.link-scripts-post-link.sh" in scripts) == (number == 2)  # it was fetched
        assert envbuild("create", "foreign", "--json") == 0
        made.append(printed(capsys))
        assert envbuild("verify", "foreign") == 0
        capsys.readouterr()
    assert made[1]["packages"] > len(SAME) + len(OLD) + len(NUMBERED)
    codes = {(one["code"], one["where"]) for one in made[1]["findings"]}
    assert {
        ("clobber", "clobber.txt"),
        ("clobber", "clobber/bobber/clobber.txt"),
        ("clobber", "clobber/clobber-fd-2.txt"),
        ("clobber", "lib/clobber.so"),
        ("dangling-link", "lib/libdangle.lib"),
        ("link-script-not-run", "bin/.failing_post_link-post-link.sh"),
    } <= codes
    assert not [where for _, where in codes if where.endswith("clobber.py")]  # equal in both
    assert (current / "bin/content.txt").is_file()
    assert envbuild("rollback", "foreign") == 0
    assert current.readlink().name == made[0]["generation"]
    assert (current / "xbin/content.txt").is_file()
    assert envbuild("verify", "foreign") == 0
    capsys.readouterr()


def foreign(*beginnings: str) -> Iterator[Made]:
    """Yield packages by the beginnings of their archives' names."""
    for beginning in beginnings:
        (archive,) = [path for path in FOREIGN.rglob(f"{beginning}*") if path.suffix != ".json"]
        index = json.loads((archive.parent / "repodata.json").read_bytes())
        record = {**index["packages"], **index["packages.conda"]}[archive.name]
        yield Made(archive=archive, record={**record, "subdir": archive.parent.name})


@pytest.mark.parametrize(
    ("names", "kind", "text"),
    [
        (["zlib-1.2.11-h7b6447c_3.conda"], FetchError, "it is a link to nowhere"),
        (["zlib-1.2.11-h7b6447c_3.tar"], FetchError, "listed as a link, but it is a file"),
        (["symlink-test"], FetchError, "symlink-test-1.0.0-0.conda: it has neither info/paths"),
        (["zip64-test"], FetchError, "zip64-test-1.0.0-0.conda: it has neither info/paths.json"),
        (["clobber-fd-1-", "clobber-fd-2-0"], Refused, "clobber: clobber-fd-1 has a file"),
        (["clobber-fd-rev-1", "clobber-fd-rev-3"], Refused, "clobber: clobber-fd-rev-3 has a"),
        (["clobber-with-dir", "clobber-without-dir"], Refused, "dir: clobber-without-dir has"),
    ],
)
def test_those_that_cannot_be_are_refused_by_name(
    tmp_path: Path, names: Sequence[str], kind: type[EnvbuildError], text: str
) -> None:
    creator = Creator(root=tmp_path / "store")
    (good,) = foreign("ripgrep-completions")
    for packages in ([good, *foreign(*names)], [*foreign(*reversed(names)), good]):
        with pytest.raises(kind) as caught:
            creator.create(order(packages))
        assert text in f"{caught.value.message}"
        assert creator.nothing_left()


def test_a_sparse_file_is_whole(tmp_path: Path) -> None:
    created = Creator(root=tmp_path / "store").create(order(list(foreign("sparse-test"))))
    prefix = created.generation.prefix
    assert {path.name for path in prefix.glob("[bls]*/*")} == {
        "first-file.txt",
        "blob.bin",
        "last-file.txt",
    }
    assert created.manifest.findings == ()
