"""Fetching, checking, extracting and linking real packages."""

import json
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from integration.channel_server import ChannelServer, serve
from integration.faults import LOGIN_PAGE, Fault
from integration.packages import FOREIGN, Content, File, Made, make_package, program

from envbuild.access import Access
from envbuild.errors import FetchError, StoreError
from envbuild.packages import CondaPackage
from envbuild.progress import Quiet
from envbuild.tools import conda_archives, rattler
from envbuild.tools.conda_archives import Fetched
from envbuild.tools.conda_tree import entry_name
from envbuild.tools.digests import of_file
from envbuild.tools.http import Session

CHANNEL = "https://channel.invalid/main"
PLACEHOLDER = "/opt/placeholder" + "_placehold" * 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ChannelServer]:
    with serve(tmp_path / "channel") as running:
        yield running


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    return tmp_path / "channel"


class Fetcher:
    """`conda_archives.fetch` with everything filled in."""

    def __init__(self, cache: Path, access: Access) -> None:
        self.cache = cache
        self.access = access
        self.first: dict[str, str] = {}

    def first_digest(self, package: CondaPackage, sha256: str) -> None:
        if self.first.setdefault(package.url, sha256) != sha256:
            message = f"{package.url}: another file than the first time"
            raise FetchError(message)

    def __call__(self, *packages: CondaPackage) -> tuple[Fetched, ...]:
        return conda_archives.fetch(
            packages,
            cache=self.cache,
            access=self.access,
            progress=Quiet(),
            first_digest=self.first_digest,
            session=Session(self.access, timeout_s=0.4, backoff_s=0.01),
        )

    def link(self, prefix: Path, *packages: CondaPackage) -> dict[str, tuple[str, ...]]:
        self(*packages)
        return rattler.link(packages, prefix=prefix, cache=self.cache, platform="linux-64")


@pytest.fixture
def fetch(server: ChannelServer, tmp_path: Path) -> Fetcher:
    access = Access(channel_mirrors={CHANNEL: (server.url,)})
    return Fetcher(tmp_path / "cache", access)


def tool(channel: Path, name: str = "tool", **record: Any) -> Made:  # noqa: ANN401
    files = {
        f"bin/{name}": program(f"#!{PLACEHOLDER}/bin/sh\necho hello\n", placeholder=PLACEHOLDER),
        f"lib/{name}.txt": File(content=b"data\n", mode=0o4666),
        f"lib/{name}.lnk": File(content=f"{name}.txt".encode(), link=True),
    }
    return make_package(channel, name, content=files, **record)


def modes(folder: Path) -> set[int]:
    found = set()
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            found.add(stat.S_IMODE(path.lstat().st_mode))
    return found


@pytest.mark.parametrize("kind", ["conda", "tar.bz2"])
def test_a_package_is_fetched_once_and_linked(
    fetch: Fetcher, server: ChannelServer, channel: Path, tmp_path: Path, kind: str
) -> None:
    package = tool(channel, kind=kind).package(CHANNEL)
    prefix = tmp_path / "prefix"
    linked = fetch.link(prefix, package)
    assert linked == {"tool": ("bin/tool", "lib/tool.lnk", "lib/tool.txt")}
    assert (prefix / "bin/tool").read_text().startswith(f"#!{prefix}/bin/sh")
    assert (prefix / "lib/tool.lnk").readlink() == Path("tool.txt")
    assert (prefix / "lib/tool.txt").stat().st_nlink == 2  # a hard link into the cache
    assert not (prefix / "CACHEDIR.TAG").exists()
    assert [fetched.fresh for fetched in fetch(package)] == [False]
    assert server.paths() == [f"/linux-64/{package.filename}"]


def test_records_in_the_prefix_show_the_canonical_address(
    fetch: Fetcher, server: ChannelServer, channel: Path, tmp_path: Path
) -> None:
    package = tool(channel, depends=["other >=1"]).package(CHANNEL)
    fetch.link(tmp_path / "prefix", package)
    path = tmp_path / "prefix/conda-meta/tool-1.0-0.json"
    record = json.loads(path.read_text())
    assert record["url"] == package.url
    assert record["channel"].rstrip("/") == CHANNEL
    assert (record["sha256"], record["md5"]) == (package.sha256, package.md5)
    assert record["depends"] == ["other >=1"]
    folder = str(tmp_path / "cache" / entry_name(package))
    assert record["extracted_package_dir"] == record["link"]["source"] == folder
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert server.url not in path.read_text()


def test_modes_are_ours_whatever_archive_and_umask_say(
    fetch: Fetcher, channel: Path, tmp_path: Path
) -> None:
    package = tool(channel).package(CHANNEL)
    old = os.umask(0o077)
    try:
        fetch.link(tmp_path / "prefix", package)
    finally:
        os.umask(old)
    assert modes(tmp_path / "cache" / entry_name(package)) == {0o755, 0o644}
    assert modes(tmp_path / "prefix") == {0o755, 0o644}


def test_a_wrong_hash_is_refused_and_leaves_nothing(
    fetch: Fetcher, server: ChannelServer, channel: Path
) -> None:
    good, bad = tool(channel).package(CHANNEL), tool(channel, "bad").package(CHANNEL)
    server.faults[f"/linux-64/{bad.filename}"] = Fault(body=b"PK other bytes")
    with pytest.raises(FetchError, match=r"bad-1\.0-0\.conda: sha256 is .*, the lock says") as info:
        fetch(good, bad)
    assert info.value.exit_code == 8
    assert not (fetch.cache / entry_name(bad)).exists()
    assert [path.name for path in fetch.cache.glob(".*.part")] == []


def test_of_a_record_with_md5_only_size_and_first_digest_count(
    fetch: Fetcher, server: ChannelServer, channel: Path
) -> None:
    made = tool(channel)
    package = made.package(CHANNEL, md5_only=True)
    fetch(package)
    assert fetch.first == {package.url: made.record["sha256"]}
    fetch(package)  # from the cache: asked again
    wrong = CondaPackage(
        name="tool", version="1.0", build="0", url=package.url, md5="0" * 32, size=package.size
    )
    with pytest.raises(FetchError, match="md5 is"):
        fetch(wrong)
    longer = CondaPackage(
        name="tool", version="1.0", build="0", url=package.url + "x.conda", md5=package.md5, size=9
    )
    server.files[f"/linux-64/{longer.filename}"] = made.archive.read_bytes()
    conda_archives.evict(package, cache=fetch.cache)
    with pytest.raises(FetchError, match="bytes is"):
        fetch(longer)
    fetch.first[package.url] = "0" * 64
    with pytest.raises(FetchError, match="another file than the first time"):
        fetch(package)
    assert not (fetch.cache / entry_name(package)).exists()


def test_a_damaged_entry_is_fetched_anew(
    fetch: Fetcher, server: ChannelServer, channel: Path
) -> None:
    package = tool(channel).package(CHANNEL)
    folder = fetch(package)[0].folder
    for damage in (
        lambda: (folder / "lib/tool.txt").write_text("DATA\n"),
        (folder / "lib/tool.txt").unlink,
        lambda: (folder / "lib/more.txt").write_text("more"),
        lambda: (folder / "lib/tool.txt").chmod(0o600),
        lambda: folder.with_name(f"{folder.name}.json").write_text("{"),
    ):
        damage()
        server.log.clear()
        assert fetch(package)[0].fresh
        assert len(server.log) == 1
        assert (folder / "lib/tool.txt").read_text() == "data\n"


def test_what_a_killed_process_left_is_no_hindrance(fetch: Fetcher, channel: Path) -> None:
    package = tool(channel).package(CHANNEL)
    part = fetch.cache / f".{entry_name(package)}.part"
    (part / "package").mkdir(parents=True)
    (fetch.cache / entry_name(package)).mkdir()  # no marker: not an entry
    assert fetch(package)[0].fresh
    assert not part.exists()


def test_local_archives_are_hashed_as_well(channel: Path, tmp_path: Path, fetch: Fetcher) -> None:
    made = tool(channel)
    for url in (made.archive.as_uri(), str(made.archive)):
        package = made.package("x")
        local = CondaPackage(
            name="tool", version="1.0", build="0", url=url, sha256=package.sha256, md5=package.md5
        )
        linked = fetch.link(tmp_path / f"prefix{len(url)}", local)
        assert linked["tool"]
        wrong = CondaPackage(name="tool", version="1.0", build="0", url=url, sha256="0" * 64)
        with pytest.raises(FetchError, match="sha256 is"):
            fetch(wrong)
    gone = CondaPackage(
        name="t", version="1", build="0", url=f"{tmp_path}/linux-64/t-1-0.conda", sha256="1" * 64
    )
    with pytest.raises(FetchError, match="No such file"):
        fetch(gone)


FAULTS: dict[str, tuple[Fault, str]] = {
    "status": (Fault(status=404), "404 Not Found"),
    "busy": (Fault(status=503), "503 Service Unavailable"),
    "cut": (Fault(cut=50), "cut short after"),
    "stall": (Fault(stall_s=1), "no answer in time"),
    "login": (Fault(body=LOGIN_PAGE), "a web page came instead"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_transfer_is_a_fetch_error(
    fetch: Fetcher, server: ChannelServer, channel: Path, name: str
) -> None:
    package = tool(channel).package(CHANNEL)
    fault, message = FAULTS[name]
    server.faults[f"/linux-64/{package.filename}"] = fault
    with pytest.raises(FetchError, match=message):
        fetch(package)
    assert not (fetch.cache / entry_name(package)).exists()


def test_the_second_mirror_helps_with_a_login_that_no_message_shows(
    channel: Path, tmp_path: Path, server: ChannelServer
) -> None:
    package = tool(channel).package(CHANNEL)
    with serve(channel, login="bob:s3cret") as private:
        access = Access(
            channel_mirrors={CHANNEL: (f"{server.url}/none", private.with_login("bob:s3cret"))}
        )
        assert Fetcher(tmp_path / "cache", access)(package)[0].fresh
        wrong = Access(channel_mirrors={CHANNEL: (private.with_login("bob:wr0ng"),)})
        with pytest.raises(FetchError, match="401") as info:
            Fetcher(tmp_path / "other", wrong)(package)
    shown = f"{info.value.message} {info.value.hint} {info.value.details}"
    assert "wr0ng" not in shown
    assert "bob" not in shown


def test_offline_only_the_cache_counts(fetch: Fetcher, channel: Path) -> None:
    package, other = tool(channel).package(CHANNEL), tool(channel, "other").package(CHANNEL)
    fetch(package)
    offline = Fetcher(fetch.cache, Access(offline=True))
    assert not offline(package)[0].fresh
    with pytest.raises(FetchError, match="not in the cache"):
        offline(other)


def raw(name: str, **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, b"x" * info.size


LINK = raw("out", type=tarfile.SYMTYPE, linkname="..")
HOSTILE: dict[str, tuple[Sequence[tuple[tarfile.TarInfo, bytes]], str]] = {
    "up": ([raw("../evil", size=1)], "outside of the package"),
    "absolute": ([raw("/evil", size=1)], "outside of the package"),
    "through-a-link": ([LINK, raw("out/evil", size=1)], "written through a link"),
    "hard-link": ([raw("h", type=tarfile.LNKTYPE, linkname="/etc/passwd")], "hard link to outside"),
    "hard-link-to-none": ([raw("h", type=tarfile.LNKTYPE, linkname="n")], "which is not there"),
    "device": ([raw("null", type=tarfile.CHRTYPE)], "neither a file nor a folder"),
    "empty-link": ([raw("l", type=tarfile.SYMTYPE, linkname="")], "a link to nowhere"),
    "file-as-folder": ([raw("f", size=1), raw("f/g", size=1)], "a file and a folder"),
}


@pytest.mark.parametrize("kind", ["conda", "tar.bz2"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_members_are_refused_by_name(
    fetch: Fetcher, channel: Path, tmp_path: Path, name: str, kind: Literal["conda", "tar.bz2"]
) -> None:
    members, message = HOSTILE[name]
    made = make_package(channel, "bad", kind=kind, content=Content(raw=tuple(members)))
    with pytest.raises(FetchError, match=message) as info:
        fetch(made.package(CHANNEL))
    assert f"bad-1.0-0.{kind}" in info.value.message
    assert not list(tmp_path.rglob("evil"))
    assert not list(fetch.cache.glob("*.json"))


BROKEN: dict[str, tuple[Content, str]] = {
    "nested": (Content(folder="bad-1.0-0/"), "its members lie in a folder"),
    "no-list": (Content(lists=()), "neither info/paths.json nor info/files"),
    "missing": (
        Content(info={"paths.json": b'{"paths": [{"_path": "lib/x", "path_type": "hardlink"}]}'}),
        "lib/x: listed as a file, but missing",
    ),
    "outside": (
        Content(info={"paths.json": b'{"paths": [{"_path": "../x", "path_type": "hardlink"}]}'}),
        "outside of the prefix",
    ),
    "no-json": (Content(info={"paths.json": b"{"}), "list of files cannot be read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_packages_are_refused_by_name(fetch: Fetcher, channel: Path, name: str) -> None:
    content, message = BROKEN[name]
    made = make_package(channel, "bad", content=content)
    with pytest.raises(FetchError, match=message) as info:
        fetch(made.package(CHANNEL))
    assert "bad-1.0-0.conda" in info.value.message


def test_a_truncated_archive_of_the_right_hash_is_refused(fetch: Fetcher, channel: Path) -> None:
    kinds: tuple[Literal["conda", "tar.bz2"], ...] = ("conda", "tar.bz2")
    for kind in kinds:
        made = make_package(channel, "cut", kind=kind, content={"a": File(content=b"1" * 9999)})
        data = made.archive.read_bytes()
        made.archive.write_bytes(data[: len(data) // 2])
        local = CondaPackage(
            name="cut",
            version="1.0",
            build="0",
            url=str(made.archive),
            sha256=of_file(made.archive, md5=False).sha256,
        )
        with pytest.raises(FetchError, match="cannot be read"):
            fetch(local)


def test_a_prefix_longer_than_a_placeholder_is_refused_before_linking(
    fetch: Fetcher, channel: Path, tmp_path: Path
) -> None:
    short = "/opt/short"
    content = {
        "bin/a": File(content=short.encode() + b"\0", placeholder=short, file_mode="binary"),
        "lib/b": File(content=short.encode() + b"\0", placeholder=short, file_mode="binary"),
        "lib/c": File(content=short.encode(), placeholder=short, file_mode="text"),
    }
    package = make_package(channel, "short", content=content).package(CHANNEL)
    prefix = tmp_path / "prefix"
    with pytest.raises(StoreError) as info:
        fetch.link(prefix, package)
    assert f"short 1.0: bin/a has room for 10 bytes, the prefix has {len(str(prefix))}" in (
        info.value.message
    )
    assert "lib/b has room" in info.value.details
    assert not prefix.exists()


def test_old_lists_of_files_are_understood(fetch: Fetcher, channel: Path, tmp_path: Path) -> None:
    files = {"bin/old": program(f"#!{PLACEHOLDER}/bin/sh\n", placeholder=PLACEHOLDER)}
    made = make_package(
        channel, "old", kind="tar.bz2", content=Content(files=files, lists=("files",))
    )
    linked = fetch.link(tmp_path / "prefix", made.package(CHANNEL))
    assert linked == {"old": ("bin/old",)}
    assert (tmp_path / "prefix/bin/old").read_text() == f"#!{tmp_path}/prefix/bin/sh\n"


def test_of_two_packages_with_one_path_the_first_keeps_it(
    fetch: Fetcher, channel: Path, tmp_path: Path
) -> None:
    packages = [
        make_package(channel, name, content={"lib/one": File(content=name.encode())}).package(
            CHANNEL
        )
        for name in ("first", "second")
    ]
    linked = fetch.link(tmp_path / "prefix", *packages)
    assert linked == {"first": ("lib/one",), "second": ("__clobbers__/second/lib/one",)}
    assert (tmp_path / "prefix/lib/one").read_text() == "first"
    assert (tmp_path / "prefix/__clobbers__/second/lib/one").read_text() == "second"


def test_nothing_is_written_through_a_link_out_of_the_prefix(
    fetch: Fetcher, channel: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    one = make_package(channel, "one", content={"share": File(content=b"../outside", link=True)})
    two = make_package(channel, "two", content={"share/evil": File(content=b"x")})
    with pytest.raises(FetchError, match=r"two: share/evil would be written to \.\./outside"):
        fetch.link(tmp_path / "prefix", one.package(CHANNEL), two.package(CHANNEL))
    assert not list(outside.iterdir())


def test_a_noarch_python_package_finds_its_place(
    fetch: Fetcher, channel: Path, tmp_path: Path
) -> None:
    python = make_package(
        channel,
        "python",
        "3.11.9",
        content={"bin/python3.11": program("#!/bin/sh\n"), "bin/python": program("#!/bin/sh\n")},
    )
    pure = make_package(
        channel,
        "pure",
        subdir="noarch",
        noarch="python",
        content={"site-packages/pure/__init__.py": File(content=b"x = 1\n")},
        depends=["python"],
    )
    linked = fetch.link(tmp_path / "prefix", python.package(CHANNEL), pure.package(CHANNEL))
    assert "lib/python3.11/site-packages/pure/__init__.py" in linked["pure"]
    assert (tmp_path / "prefix/lib/python3.11/site-packages/pure/__init__.py").is_file()


def test_link_wants_an_absolute_prefix_and_what_was_fetched(
    fetch: Fetcher, channel: Path, tmp_path: Path
) -> None:
    package = tool(channel).package(CHANNEL)
    fetch.cache.mkdir()
    with pytest.raises(FetchError, match="is not in the cache"):
        rattler.link([package], prefix=tmp_path / "p", cache=fetch.cache, platform="linux-64")
    with pytest.raises(StoreError, match="absolute path"):
        rattler.link([package], prefix=Path("p"), cache=fetch.cache, platform="linux-64")


# Packages that others made for their tests


def foreign(name: str) -> CondaPackage:
    (archive,) = [path for path in FOREIGN.rglob(f"{name}*") if path.suffix != ".json"]
    digests = of_file(archive, md5=True)
    stem = archive.name.removesuffix(".conda").removesuffix(".tar.bz2")
    parts = stem.rsplit("-", 2)
    return CondaPackage(
        name=parts[0],
        version=parts[1],
        build=parts[2],
        url=str(archive),
        sha256=digests.sha256,
        md5=digests.md5,
        size=digests.size,
    )


needs_foreign = pytest.mark.skipif(not FOREIGN.is_dir(), reason="../shared/packages is not there")


@needs_foreign
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("zlib-1.2.11-h7b6447c_3.conda", "a link to nowhere"),
        ("zlib-1.2.11-h7b6447c_3.tar.bz2", "listed as a link, but it is a file"),
        ("symlink-test", "neither info/paths.json nor info/files"),
        ("zip64-test", "neither info/paths.json nor info/files"),
    ],
)
def test_foreign_packages_that_cannot_be_installed_are_refused(
    fetch: Fetcher, name: str, message: str
) -> None:
    with pytest.raises(FetchError, match=message):
        fetch(foreign(name))


@needs_foreign
def test_foreign_packages_are_installed(fetch: Fetcher, tmp_path: Path) -> None:
    names = (
        "ripgrep-completions",
        "dummy-trampoline-path",
        "prefix-ignore",
        "sparse-test",
        "activate_deactivate_package",
        "small-executable",
        "cph_test_data",
        "empty-0.1.0",
        "failing_post_link",
        "post_link-b",
        "link-scripts",
    )
    linked = fetch.link(tmp_path / "prefix", *(foreign(name) for name in names))
    for package, files in linked.items():
        for path in files:
            assert os.path.lexists(tmp_path / "prefix" / path), (package, path)
    assert modes(tmp_path / "prefix") <= {0o755, 0o644}
    assert linked["empty"] == ()
