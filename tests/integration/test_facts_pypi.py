"""The tables of facts against PyPI: rows read anew, and wheels read whole.

`ENVBUILD_TEST_FACTS=all` (the nox session `facts`) looks at all rows and at all wheels that
`whole_wheels.toml` names: 10 GB of downloads, a quarter of an hour. Otherwise a few are looked at.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.locking import envbuild
from packaging.utils import parse_wheel_filename

from envbuild.cli.context import Here
from envbuild.compat.derive import index
from envbuild.compat.derive.verify import is_derivable
from envbuild.compat.model import FrameworkBuild
from envbuild.compat.tables import load
from envbuild.native.code import GpuCode, capability_of, code_of, verdict
from envbuild.native.inspect import inspect
from envbuild.native.model import NativeFacts
from envbuild.tools.http import Session

pytestmark = [pytest.mark.network, pytest.mark.slow]

ALL = os.environ.get("ENVBUILD_TEST_FACTS") == "all"
SMALL_BYTES = 20_000_000
KERNELS = ("libtorch_cuda.so", "libtorch_cuda_cu.so", "xla_cuda_plugin.so")
"""The libraries of a framework's own kernels; the plugins of JAX have them in each of theirs."""


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel of the list."""

    filename: str
    sha256: str
    bytes: int


LISTED = tomllib.loads((Path(__file__).parents[1] / "data/whole_wheels.toml").read_text())
WHEELS = [Wheel(**row) for row in LISTED["wheel"]]


def build_of(wheel: Wheel) -> FrameworkBuild:
    """Return the row of the facts that a wheel belongs to."""
    name, version, _, tags = parse_wheel_filename(wheel.filename)
    plugin = re.fullmatch(r"jax-(cuda\d+)-.*", name)
    wanted = ("jax", plugin[1]) if plugin else ("pytorch", "pypi")
    aarch64 = any(tag.platform.endswith("aarch64") for tag in tags)
    (row,) = (
        row
        for row in load().builds
        if (row.framework, row.origin) == wanted
        and row.version == str(version)
        and row.platform == ("linux-aarch64" if aarch64 else "linux-64")
    )
    return row


def kernels(read: NativeFacts) -> list[frozenset[GpuCode]]:
    """Return the GPU code of each library of a framework's kernels."""
    by_name = {file.path.rpartition("/")[2]: file.codes for file in read.files if file.codes}
    named = [codes for name, codes in by_name.items() if name in KERNELS]
    return named or list(by_name.values())


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.filename)
def test_what_the_facts_say_of_cards_is_what_the_whole_wheel_holds(
    wheel: Wheel, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if wheel.bytes > SMALL_BYTES and not ALL:
        pytest.skip("a large wheel: ENVBUILD_TEST_FACTS=all (nox -s facts) reads it")
    row = build_of(wheel)
    access = Here().access
    name, version, _, _ = parse_wheel_filename(wheel.filename)
    known = index.default(access).versions(name)[version]
    (url,) = (one.file.url for one in known if one.file.filename == wheel.filename)
    path = tmp_path / wheel.filename
    Session(access).download(url, path, sha256=wheel.sha256, size=wheel.bytes)
    read = inspect(path)
    path.unlink()
    assert [file.problem for file in read.files if file.problem] == []
    whole = kernels(read)
    assert whole
    for card in load().gpus:
        capability = capability_of(card.capability)
        (found,) = {verdict(codes, capability) for codes in whole}
        record_property(card.id, found)
        for told in (row.codes, row.all_codes):
            if told:
                said = verdict(frozenset(map(code_of, told)), capability)
                assert said == found, f"{row.name} on {card.id}"


def verified(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, list[str]]:
    """Read rows anew; return the names of rows by what came of them."""
    envbuild("facts", "verify", *words, "--json")
    told = capsys.readouterr()
    names: dict[str, list[str]] = {"same": [], "differs": [], "not derivable": []}
    for row in json.loads(told.out)["facts"]:
        names[row["verdict"]].append(row["name"])
        if row["verdict"] == "not derivable":
            assert row["sources"]
    return names


def test_rows_are_as_they_were_read(
    capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> None:
    words = ["--libraries"] if ALL else ["0.9.0 cuda13", "--libraries"]
    names = verified(capsys, *words)
    for verdict_, found in names.items():
        record_property(verdict_, len(found))
    able = len(names["same"]) + len(names["differs"])
    assert able == (sum(map(is_derivable, load().rows())) if ALL else 1)
    assert len(names["same"]) >= 0.95 * able, names["differs"]


def test_every_release_has_its_rows() -> None:
    if not ALL:
        pytest.skip("ENVBUILD_TEST_FACTS=all (nox -s facts) asks for it")
    listed = index.default(Here().access)
    known = {(row.framework, row.version) for row in load().builds}
    for framework, project, first in (("pytorch", "torch", "1.8"), ("jax", "jax", "0.4.20")):
        missing = [
            f"{version}"
            for version in listed.versions(project)
            if version >= type(version)(first) and not version.is_prerelease
            if (framework, f"{version}") not in known
        ]
        assert missing == [], f"envbuild facts derive {framework}=={missing[0]}"
