"""Solving against real records, served on localhost through the mirror setting."""

import json
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from integration.channel_server import (
    SNAPSHOT,
    ChannelServer,
    make_certificate,
    serve,
    snapshot_mirrors,
)
from integration.faults import LOGIN_PAGE, Fault
from integration.packages import UPLOADED_MS, Made, make_package, write_index

from envbuild.access import Access
from envbuild.errors import FetchError, NoSolution, RecipeError, ToolFailed
from envbuild.packages import CondaPackage
from envbuild.target import Platform, Target
from envbuild.tools import rattler
from envbuild.tools.rattler import Solved, SolveRequest
from envbuild.tools.run import Completed, run

NOW = datetime(2026, 12, 1, tzinfo=UTC)
UPLOADED = datetime.fromtimestamp(UPLOADED_MS / 1000, UTC)
NVIDIA = ("nvidia/label/cuda-12.4.0", "nvidia", "pytorch", "conda-forge")
GCC = ("gxx_linux-64 12.*",)
INDEXES = ("repodata.json", "repodata.json.zst", "repodata.json.bz2", "repodata_shards.msgpack.zst")


@pytest.fixture(scope="module")
def snapshot() -> Iterator[ChannelServer]:
    with serve(SNAPSHOT) as running:
        yield running


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def request(
    *specs: str,
    channels: Sequence[str] = ("conda-forge",),
    cuda: str | None = None,
    platform: Platform = "linux-64",
    cutoff: datetime = NOW,
    **more: Any,  # noqa: ANN401
) -> SolveRequest:
    target = Target(platform=platform, cuda=cuda)
    return SolveRequest(target=target, channels=tuple(channels), specs=specs, cutoff=cutoff, **more)


TABLE: dict[str, tuple[SolveRequest, int]] = {
    "pytorch 2.4 of the pytorch channel": (
        request(
            "python 3.10.*",
            "pytorch 2.4.0 py3.10_cuda12.4*",
            "pytorch-cuda 12.4.*",
            "gxx_linux-64 12.*",
            "numpy <2",
            channels=NVIDIA,
            cuda="12.4",
        ),
        91,
    ),
    "pytorch 2.3 of the pytorch channel": (
        request(
            "python 3.10.*",
            "pytorch 2.3.0 py3.10_cuda12.1*",
            channels=("pytorch", "nvidia", "conda-forge"),
            cuda="12.1",
        ),
        78,
    ),
    "pytorch 2.8": (request("python 3.13.*", "pytorch 2.8.* cuda129*", cuda="12.9"), 90),
    "pytorch 2.12": (request("python 3.11.*", "pytorch 2.12.* cuda129*", cuda="12.9"), 92),
    "jax": (request("python 3.11.*", "jax", "jaxlib * cuda*", cuda="12.9"), 76),
    "compilers": (
        request("python 3.11.*", "pip", *GCC, "cmake", "ninja", "ccache", cuda="12.4"),
        54,
    ),
    "aarch64": (
        request("python 3.12.*", "gxx_linux-aarch64", cuda="12.9", platform="linux-aarch64"),
        33,
    ),
}


def test_every_known_solve_solves_in_one_process(snapshot: ChannelServer, cache: Path) -> None:
    started = []

    def counting(argv: Any, **options: Any) -> Completed:  # noqa: ANN401
        started.append(argv)
        return run(argv, **options)

    access = Access(channel_mirrors=snapshot_mirrors(snapshot))
    answers = rattler.solve(
        [asked for asked, _ in TABLE.values()], access=access, cache=cache, runner=counting
    )
    counts = {name: len(answer.packages) for name, answer in zip(TABLE, answers, strict=True)}
    assert counts == {name: count for name, (_, count) in TABLE.items()}
    assert len(started) == 1
    for answer in answers:
        names = [package.name for package in answer.packages]
        assert names == sorted(set(names))
        for package in answer.packages:
            assert package.channel_url.startswith("https://conda.anaconda.org/")
            assert package.md5
            assert package.size
            needed = [spec.split()[0] for spec in package.depends]
            assert needed == sorted(set(needed))


def solve_on(server: ChannelServer, cache: Path, *asked: SolveRequest) -> tuple[Solved, ...]:
    return rattler.solve(
        asked, access=Access(channel_mirrors=snapshot_mirrors(server)), cache=cache
    )


def by_name(solved: Solved) -> dict[str, CondaPackage]:
    return {package.name: package for package in solved.packages}


def test_build_strings_with_dots_and_channels_in_specs(
    snapshot: ChannelServer, cache: Path
) -> None:
    asked = request(
        "python 3.10.*",
        "pytorch::pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0",
        "numpy[channel=conda-forge, version='<2']",
        "conda-forge::cuda-version",
        channels=NVIDIA,
        cuda="12.4",
        constraints=("cuda-version 12.4.*", "cudnn 9.1.*"),
    )
    (solved,) = solve_on(snapshot, cache, asked)
    found = by_name(solved)
    assert found["pytorch"].build == "py3.10_cuda12.4_cudnn9.1.0_0"
    assert found["pytorch"].channel_url.endswith("/pytorch")
    assert found["cuda-version"].version == "12.4"
    weak = [package for package in solved.packages if package.sha256 is None]
    assert len(weak) == 17
    assert all(package.md5 and package.size for package in weak)


def test_priority_is_strict_and_its_reversal_unsolvable(
    snapshot: ChannelServer, cache: Path
) -> None:
    asked, _ = TABLE["pytorch 2.4 of the pytorch channel"]
    (solved,) = solve_on(snapshot, cache, asked)
    origins = [
        package.channel_url.removeprefix("https://conda.anaconda.org/")
        for package in (solved.packages)
    ]
    counts = {name: origins.count(name) for name in sorted(set(origins))}
    assert counts == {"conda-forge": 70, "nvidia/label/cuda-12.4.0": 17, "pytorch": 4}
    with pytest.raises(NoSolution, match="no solution for linux-64") as info:
        solve_on(snapshot, cache, replace(asked, channels=NVIDIA[::-1]))
    assert "pytorch" in info.value.details


def test_a_gpu_package_needs_the_target_to_have_a_gpu(snapshot: ChannelServer, cache: Path) -> None:
    with pytest.raises(NoSolution) as info:
        solve_on(snapshot, cache, request("python 3.13.*", "pytorch 2.8.* cuda129*", cuda=None))
    assert "__cuda" in info.value.details


def test_no_candidates_may_mean_another_spec(snapshot: ChannelServer, cache: Path) -> None:
    asked = request(
        "python 3.13.*",
        "pytorch 2.4.0 py3.10_cuda12.4_cudnn9.1.0_0",
        channels=("pytorch", "conda-forge"),
    )
    with pytest.raises(NoSolution) as info:
        solve_on(snapshot, cache, asked)
    assert "python >=3.10,<3.11.0a0" in info.value.details
    assert info.value.hint is not None
    assert "another of its specs" in info.value.hint
    with pytest.raises(NoSolution) as info:
        solve_on(snapshot, cache, request("python 9.*"))
    assert "python: none of " in info.value.details


def test_two_mirrors_give_equal_records_and_show_in_none(tmp_path: Path) -> None:
    asked = [TABLE["compilers"][0], TABLE["aarch64"][0]]
    answers = []
    for name, login in (("one", None), ("two", "bob:s3cret")):
        with serve(SNAPSHOT, login=login) as server:
            base = server.with_login(login) if login else server.url
            access = Access(
                channel_mirrors={
                    "https://conda.anaconda.org/conda-forge": (f"{base}/conda-forge/",)
                }
            )
            answers.append(rattler.solve(asked, access=access, cache=tmp_path / name))
    assert answers[0] == answers[1]
    assert "127.0.0.1" not in repr(answers)


@pytest.mark.parametrize("first", ["http://127.0.0.1:9/conda-forge", "URL/no-such-folder"])
def test_a_second_mirror_helps(tmp_path: Path, first: str) -> None:
    with serve(SNAPSHOT) as server:
        mirrors = (first.replace("URL", server.url), f"{server.url}/conda-forge")
        access = Access(channel_mirrors={"conda-forge": mirrors})
        (solved,) = rattler.solve([request("python 3.11.*")], access=access, cache=tmp_path)
    assert solved.packages


def test_a_login_shows_in_no_error(tmp_path: Path) -> None:
    with serve(SNAPSHOT, login="bob:s3cret") as server:
        url = server.with_login("bob:wr0ng") + "/conda-forge"
        access = Access(channel_mirrors={"conda-forge": (url,)})
        with pytest.raises(FetchError, match="channel conda-forge: 401 Unauthorized") as info:
            rattler.solve([request("python")], access=access, cache=tmp_path)
    shown = f"{info.value.message} {info.value.hint} {info.value.details}"
    assert "bob" not in shown
    assert "wr0ng" not in shown


def test_a_login_may_come_from_netrc(tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login bob password s3cret\n")
    with serve(SNAPSHOT, login="bob:s3cret") as server:
        access = Access(channel_mirrors=snapshot_mirrors(server), environment={"NETRC": str(netrc)})
        (solved,) = rattler.solve([request("python 3.11.*")], access=access, cache=tmp_path)
    assert solved.packages


def test_a_proxy_and_certificates_come_from_the_access(tmp_path: Path) -> None:
    asked = request("python 3.11.*")
    nowhere = {"conda-forge": ("http://nowhere.invalid/conda-forge",)}
    with serve(SNAPSHOT) as server:  # it takes what a proxy is asked: a whole address
        access = Access(channel_mirrors=nowhere, environment={"HTTP_PROXY": server.url})
        (solved,) = rattler.solve([asked], access=access, cache=tmp_path / "a")
    certificate, authority = make_certificate(tmp_path)
    with serve(SNAPSHOT, certificate=certificate) as server:
        mirrors = snapshot_mirrors(server)
        trusted = Access(channel_mirrors=mirrors, environment={"SSL_CERT_FILE": str(authority)})
        assert rattler.solve([asked], access=trusted, cache=tmp_path / "b") == (solved,)
        with pytest.raises(FetchError, match="conda-forge: the server's certificate"):
            rattler.solve([asked], access=Access(channel_mirrors=mirrors), cache=tmp_path / "c")


FAULTS: dict[str, tuple[Fault, str]] = {
    "missing": (Fault(status=404), "404 Not Found"),
    "forbidden": (Fault(status=403), "403 Forbidden"),
    "busy": (Fault(status=503), "503 Service Unavailable"),
    "page": (Fault(body=LOGIN_PAGE), "the answer is not a channel index"),
    "cut": (Fault(cut=100), "the answer was cut short"),
}


def test_a_channel_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    def look(name: str) -> None:
        fault, message = FAULTS[name]
        with serve(SNAPSHOT) as server:
            server.faults = {f"/conda-forge/noarch/{index}": fault for index in INDEXES}
            asked = request("python", channels=("pytorch", "conda-forge"))
            with pytest.raises(FetchError, match=message) as info:
                solve_on(server, tmp_path / name, asked)
        assert info.value.message.startswith("channel conda-forge: ")
        assert info.value.exit_code == 8

    with ThreadPoolExecutor(len(FAULTS)) as pool:  # the engine's own retries take seconds
        list(pool.map(look, FAULTS))


@pytest.mark.parametrize("bad", [LOGIN_PAGE, b'{"packages": {"a-1-0.tar.bz2": {"name": "a"'])
def test_what_a_mirror_gave_wrongly_does_not_stay(tmp_path: Path, bad: bytes) -> None:
    asked = request("python 3.11.*")
    with serve(SNAPSHOT) as server:
        index = "/conda-forge/noarch/repodata.json"
        server.files[index] = bad
        server.faults = {f"{index}.zst": Fault(status=404)}
        with pytest.raises(FetchError, match="conda-forge: the answer is not a channel index"):
            solve_on(server, tmp_path, asked)
    with serve(SNAPSHOT) as server:  # "not modified", whatever was kept
        server.faults = {f"{index}{end}": Fault(status=304, times=1) for end in ("", ".zst")}
        (solved,) = solve_on(server, tmp_path, asked)
    assert solved.packages


def test_an_unreachable_mirror_is_named(tmp_path: Path) -> None:
    access = Access(channel_mirrors={"conda-forge": ("http://127.0.0.1:9/cf",)})
    with pytest.raises(FetchError, match="channel conda-forge: connection refused"):
        rattler.solve([request("python")], access=access, cache=tmp_path)


@pytest.mark.parametrize("fault", [Fault(status=403), Fault(body=LOGIN_PAGE), Fault(status=500)])
def test_a_mirror_without_shards_may_say_so_in_any_way(tmp_path: Path, fault: Fault) -> None:
    with serve(SNAPSHOT) as server:
        for subdir in ("linux-64", "noarch"):
            server.faults[f"/conda-forge/{subdir}/repodata_shards.msgpack.zst"] = fault
        (solved,) = solve_on(server, tmp_path, request("python 3.11.*"))
    assert solved.packages


def test_offline_only_the_cache_counts(tmp_path: Path) -> None:
    asked = request("python 3.11.*")
    with serve(SNAPSHOT) as server:
        (online,) = solve_on(server, tmp_path / "a", asked)
    offline = Access(offline=True)
    assert rattler.solve([asked], access=offline, cache=tmp_path / "a") == (online,)
    with pytest.raises(FetchError, match="conda-forge: it is not in the cache") as info:
        rattler.solve([asked], access=offline, cache=tmp_path / "b")
    assert info.value.hint == "run it once without --offline"


# A small channel of our own


CHANNEL = "https://channel.invalid/main"


class Small:
    """A channel of small packages, and solves against it."""

    def __init__(self, root: Path, server: ChannelServer) -> None:
        self.root = root
        self.server = server
        self.made: list[Made] = []

    def add(self, name: str, version: str = "1.0", **record: Any) -> Made:  # noqa: ANN401
        made = make_package(self.root / "channel", name, version, **record)
        self.made.append(made)
        write_index(self.root / "channel", self.made)
        return made

    def solve(self, *specs: str, **options: Any) -> Solved:  # noqa: ANN401
        shutil.rmtree(self.root / "cache", ignore_errors=True)
        access = Access(channel_mirrors={CHANNEL: (self.server.url,)})
        asked = request(*specs, channels=(CHANNEL,), **options)
        return rattler.solve([asked], access=access, cache=self.root / "cache")[0]

    def versions(self, *specs: str, **options: Any) -> dict[str, str]:  # noqa: ANN401
        solved = self.solve(*specs, **options)
        return {package.name: package.version for package in solved.packages}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    with serve(tmp_path / "channel") as server:
        yield Small(tmp_path, server)


def test_a_record_counts_if_uploaded_strictly_before_the_cutoff(small: Small) -> None:
    small.add("a", "1.0", timestamp=UPLOADED_MS - 1000)
    small.add("a", "2.0", timestamp=UPLOADED_MS)
    assert small.versions("a", cutoff=UPLOADED) == {"a": "1.0"}
    later = UPLOADED + timedelta(microseconds=1)
    assert small.versions("a", cutoff=later) == {"a": "2.0"}
    # one instant, written in another zone
    tokyo = UPLOADED.astimezone(timezone(timedelta(hours=9)))
    assert small.versions("a", cutoff=tokyo) == {"a": "1.0"}
    assert small.versions("a", cutoff=tokyo + timedelta(milliseconds=1)) == {"a": "2.0"}


@pytest.mark.parametrize("milliseconds", [1, 7, 123, 555, 999])
def test_the_cutoff_loses_no_millisecond(small: Small, milliseconds: int) -> None:
    small.add("a", "1.0", timestamp=UPLOADED_MS)
    small.add("a", "2.0", timestamp=UPLOADED_MS + milliseconds)
    at = UPLOADED + timedelta(milliseconds=milliseconds)
    assert small.versions("a", cutoff=at) == {"a": "1.0"}
    assert small.versions("a", cutoff=at + timedelta(milliseconds=1)) == {"a": "2.0"}


def test_what_the_cutoff_left_out_is_said(small: Small) -> None:
    small.add("a", "1.0")
    small.add("a", "2.0")
    with pytest.raises(NoSolution) as info:
        small.solve("a >=2", cutoff=UPLOADED)
    assert "a: of 1 records that match, 1 not before the cutoff" in info.value.details


def test_records_without_upload_time_are_left_out_and_named(small: Small) -> None:
    small.add("a", "1.0")
    undated = small.add("a", "2.0", timestamp=None)
    small.add("a", "3.0", timestamp=None, depends=["nothing"])
    small.add("b", "1.0", depends=["a <3"])
    small.add("b", "0.5", timestamp=None)  # older than the chosen one: nothing is lost
    solved = small.solve("b")
    assert {package.name: package.version for package in solved.packages} == {
        "a": "1.0",
        "b": "1.0",
    }
    assert solved.undated == (f"{CHANNEL}/linux-64/{undated.archive.name}",)
    with pytest.raises(NoSolution) as info:
        small.solve("a >=2")
    assert "a: of 2 records that match, 2 without an upload time" in info.value.details


def test_a_relock_keeps_what_need_not_change(small: Small) -> None:
    old = small.add("a", "1.0").package(CHANNEL)
    small.add("b", "1.0", depends=["a"])
    small.add("a", "2.0")
    assert small.versions("b") == {"a": "2.0", "b": "1.0"}
    assert small.versions("b", prefer=(old,)) == {"a": "1.0", "b": "1.0"}
    assert small.versions("b", "a >=2", prefer=(old,)) == {"a": "2.0", "b": "1.0"}


def test_a_record_is_kept_only_if_it_may_be(small: Small) -> None:
    late = small.add("a", "1.0", timestamp=UPLOADED_MS + 1000).package(CHANNEL)
    small.add("a", "0.5")
    cutoff = UPLOADED + timedelta(milliseconds=500)
    assert small.versions("a", cutoff=cutoff, prefer=(late,)) == {"a": "0.5"}
    gone = small.add("a", "0.4").package(CHANNEL)
    small.made.pop()
    write_index(small.root / "channel", small.made)
    assert small.versions("a", prefer=(gone,)) == {"a": "1.0"}


def test_constraints_hold_only_for_what_is_installed(small: Small) -> None:
    small.add("cuda-version", "12.4")
    small.add("cuda-version", "12.6")
    small.add("part", depends=["cuda-version"])
    small.add("alone")
    limit = ("cuda-version 12.4.*",)
    assert small.versions("part", constraints=limit) == {"part": "1.0", "cuda-version": "12.4"}
    assert small.versions("alone", constraints=limit) == {"alone": "1.0"}


def test_depends_of_one_name_become_one(small: Small) -> None:
    small.add("p", "3.11.5", build="1_cpython")
    small.add(
        "a", depends=["p >=3.10,<3.12.0a0", "p >=3.11", "p 3.11.* *_cpython", "__glibc >=2.17"]
    )
    (package, _) = small.solve("a").packages
    assert package.depends == ("__glibc >=2.17", "p 3.11.*,<3.12.0a0,>=3.10,>=3.11 *_cpython")


def test_the_target_alone_offers_virtual_packages(small: Small) -> None:
    for name, depends in {
        "libc": "__glibc >=2.29",
        "kernel": "__linux >=5",
        "level": "__archspec 1 x86_64_v4",
        "unix": "__unix",
    }.items():
        small.add(name, depends=[depends])
    assert small.versions("unix") == {"unix": "1.0"}
    for name in ("libc", "kernel", "level"):
        with pytest.raises(NoSolution):
            small.solve(name)
    target = Target(platform="linux-64", glibc="2.34", archspec="x86_64_v4")
    access = Access(channel_mirrors={CHANNEL: (small.server.url,)})
    asked = SolveRequest(target=target, channels=(CHANNEL,), specs=("libc", "level"), cutoff=NOW)
    assert rattler.solve([asked], access=access, cache=small.root / "cache")[0].packages


def test_an_index_that_names_another_host_still_gives_canonical_addresses(small: Small) -> None:
    small.add("a")
    path = small.root / "channel/linux-64/repodata.json"
    index = json.loads(path.read_text())
    index["info"]["base_url"] = f"{small.server.url}/linux-64/"
    path.write_text(json.dumps(index))
    assert small.solve("a").packages[0].url == f"{CHANNEL}/linux-64/a-1.0-0.conda"


def test_a_channel_without_noarch_is_a_fetch_error(small: Small) -> None:
    small.add("a")
    shutil.rmtree(small.root / "channel/noarch")
    with pytest.raises(FetchError, match=r"channel https://channel\.invalid/main: 404"):
        small.solve("a")


def test_a_spec_that_is_none_is_a_recipe_error(small: Small) -> None:
    small.add("a")
    with pytest.raises(RecipeError, match="cannot be read"):
        small.solve("a >=1.0,,<")


# The worker process


@pytest.mark.slow
def test_the_worker_leaves_cleanly_every_time(small: Small) -> None:
    small.add("a")
    access = Access(channel_mirrors={CHANNEL: (small.server.url,)})

    def once(spec: str) -> str:
        asked = request(spec, channels=(CHANNEL,))
        try:
            rattler.solve([asked], access=access, cache=small.root / "cache")
        except NoSolution:
            return "no"
        return "yes"

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(once, ["a", "nothing"] * 30))
    assert answers == ["yes", "no"] * 30


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import os; os.abort()", "ended with signal 6"),
        ("import sys; sys.exit('broken')", "ended with 1"),
        ("print('no answer')", "gave no answer"),
    ],
)
def test_a_worker_that_breaks_is_a_tool_error(tmp_path: Path, program: str, message: str) -> None:
    def broken(argv: Any, **options: Any) -> Completed:  # noqa: ANN401
        return run([argv[0], "-c", program], **options)

    with pytest.raises(ToolFailed, match=message) as info:
        rattler.solve([request("a")], access=Access(), cache=tmp_path, runner=broken)
    assert info.value.exit_code == 5


def test_an_unknown_request_is_answered_not_crashed(tmp_path: Path) -> None:
    def confused(argv: Any, **options: Any) -> Completed:  # noqa: ANN401
        return run(argv, **{**options, "stdin": '{"do": "dance"}'})

    with pytest.raises(ToolFailed, match="KeyError") as info:
        rattler.solve([request("a")], access=Access(), cache=tmp_path, runner=confused)
    assert "Traceback" in info.value.details
