"""Rebuilds of Rust sources: their crates are fetched before the build, as Cargo.lock says."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.crate_registry import INDEX, crate, registry
from integration.index_server import Index, IndexServer, serving, wheel
from integration.rebuilding import Builder, needs_gcc, project, wanted

from envbuild.access import Access
from envbuild.errors import FetchError, InputError, ToolMissing

_CARGO = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not here")
pytestmark = [needs_gcc]

_BUILDS = """\
subprocess.run(["cargo", "build", "--release"], check=True)
    os.environ["CFLAGS"] = "-Wl,--whole-archive target/release/libhalf.a -Wl,--no-whole-archive"
"""
_LIBRARY = """\
#[no_mangle]
pub extern "C" fn half() -> *const u8 { greeting::WORDS.as_ptr() }
"""
_MANIFEST = """\
[package]
name = "half"
version = "0.1.0"
edition = "2021"
[lib]
crate-type = ["staticlib"]
[dependencies]
greeting = {{ version = "1", registry-index = "{index}" }}
"""
_LOCK = """\
version = 3
{greeting}
[[package]]
name = "half"
version = "0.1.0"
dependencies = ["greeting"]
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Site:
    """Sources of which a half is Rust's, and where their crate is."""

    folder: Path
    crates: Path
    home: Path

    def builder(self, root: Path, server: IndexServer) -> Builder:
        own = {"HOME": os.environ["HOME"], "CARGO_HOME": f"{self.home}"}
        own |= {key: os.environ[key] for key in ("RUSTUP_HOME",) if key in os.environ}
        access = Access(default_index=server.url("main"))
        return Builder(root=root / "store", access=access, own=own)


@pytest.fixture
def site(tmp_path: Path) -> _Site:
    site = _Site(
        folder=project(tmp_path / "demo", before=_BUILDS, requires=["maturin"]),
        crates=tmp_path / "crates",
        home=tmp_path / "cargo",
    )
    words = 'pub static WORDS: &str = "good morning from a crate";\n'
    locked = crate(site.crates, "greeting", "1.2.3", words)
    (site.folder / "Cargo.toml").write_text(_MANIFEST.format(index=INDEX))
    (site.folder / "Cargo.lock").write_text(_LOCK.format(greeting=locked))
    (site.folder / "src").mkdir()
    (site.folder / "src/lib.rs").write_text(_LIBRARY)
    (site.folder / "rust-toolchain.toml").write_text('[toolchain]\nchannel = "1.2.3"\n')
    return site


def _index() -> Index:
    return Index(wheels=[wheel("maturin", "1.7")])


@_CARGO
def test_crates_are_fetched_recorded_and_built_without_a_network(
    site: _Site, tmp_path: Path
) -> None:
    with serving(main=_index()) as server:
        builder = site.builder(tmp_path, server)
        with registry(site.crates, site.home):
            first = builder.build(wanted(site.folder)).kept
        again = builder.build(wanted(site.folder), again=True).kept  # its registry is gone
    assert again.sha256 == first.sha256
    told = json.loads(again.statement.text)["predicate"]["buildDefinition"]
    rows = [row for row in told["resolvedDependencies"] if row["name"] == "crate"]
    assert [row["uri"] for row in rows] == ["pkg:cargo/greeting@1.2.3"]
    assert f'checksum = "{rows[0]["digest"]["sha256"]}"' in (site.folder / "Cargo.lock").read_text()
    assert told["internalParameters"]["rust"]["origin"] == "host"
    tools = {row["uri"] for row in told["resolvedDependencies"] if row["name"] == "toolchain"}
    assert {"file:rustc", "file:cargo"} <= tools


@_CARGO
def test_crates_that_cannot_be_had_are_an_error_before_anything_is_built(
    site: _Site, tmp_path: Path
) -> None:
    with registry(site.crates, site.home):
        pass  # now nobody answers there
    with serving(main=_index()) as server:
        builder = site.builder(tmp_path, server)
        with pytest.raises(FetchError) as caught:
            builder.build(wanted(site.folder))
    said = caught.value.message
    assert said.startswith("demo: cargo cannot fetch the crates that its build needs: ")
    assert "127.0.0.1" in said
    assert "\n" not in said
    assert "~/.cargo/config.toml" in (caught.value.hint or "")
    assert not any((builder.store.rebuild_cache / "sources/crates").iterdir())
    assert not (builder.store.rebuild_cache / "builds").exists()


@_CARGO
def test_a_crate_of_another_content_is_refused(site: _Site, tmp_path: Path) -> None:
    crate(site.crates, "greeting", "1.2.3", 'pub static WORDS: &str = "something else";\n')
    with registry(site.crates, site.home), serving(main=_index()) as server:
        builder = site.builder(tmp_path, server)
        with pytest.raises(FetchError) as caught:
            builder.build(wanted(site.folder))
    assert "greeting" in caught.value.details


@_CARGO
def test_crates_that_the_sources_bring_along_are_taken_from_there(
    site: _Site, tmp_path: Path
) -> None:
    brought = site.folder / "brought/greeting"
    (brought / "src").mkdir(parents=True)
    (brought / "src/lib.rs").write_text('pub static WORDS: &str = "brought along";\n')
    (brought / "Cargo.toml").write_text('[package]\nname = "greeting"\nversion = "1.2.3"\n')
    lock = (site.folder / "Cargo.lock").read_text()
    digest = lock.partition('checksum = "')[2].partition('"')[0]
    (brought / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": digest}))
    (site.folder / ".cargo").mkdir()
    (site.folder / ".cargo/config.toml").write_text(
        f'[source.public]\nregistry = "{INDEX}"\nreplace-with = "own"\n'
        '[source.own]\ndirectory = "brought"\n'
    )
    with serving(main=_index()) as server:
        kept = site.builder(tmp_path, server).build(wanted(site.folder)).kept
    assert '"name": "crate"' not in kept.statement.text
    assert kept.statement.internal["rust"]["origin"] == "host"


@_CARGO
def test_without_a_lock_nothing_says_which_crates(site: _Site, tmp_path: Path) -> None:
    (site.folder / "Cargo.lock").unlink()
    with serving(main=_index()) as server:
        builder = site.builder(tmp_path, server)
        with pytest.raises(InputError, match=r"without a Cargo\.lock"):
            builder.build(wanted(site.folder))


def test_rust_that_is_missing_is_said_before_the_build(site: _Site, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("gcc-12", "g++-12"):
        (programs / name).symlink_to(shutil.which(name) or name)
    with serving(main=_index()) as server:
        builder = site.builder(tmp_path, server)
        builder.search = f"{programs}"
        with pytest.raises(ToolMissing) as caught:
            builder.build(wanted(site.folder))
    assert caught.value.message.startswith("demo 1.0: its build needs Rust")
    assert "`rust`" in (caught.value.hint or "")
