"""Any lock that a solve could give, for property tests."""

import json
from datetime import UTC, datetime

from hypothesis import strategies as st

from envbuild.lock.digest import digest_of
from envbuild.lock.model import Lock, PlatformLock
from envbuild.packages import CondaPackage, PipPackage
from envbuild.target import PLATFORMS, Platform

_HEX = "0123456789abcdef"
names = st.from_regex(r"[a-z0-9_][a-z0-9._-]{0,12}", fullmatch=True)
pip_names = st.from_regex(r"[a-z0-9]{1,6}(-[a-z0-9]{1,6}){0,2}", fullmatch=True)
versions = st.one_of(
    st.sampled_from(["3.10", "1e5", "2024a", "1!2.0", "0.1.0", "1", "010", "2.0.post1", "1_0"]),
    st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}", fullmatch=True),
)
builds = st.sampled_from(
    ["py3.10_cuda12.4_cudnn9.1.0_0", "h1234e5_0", "0", "1e3", "true", "pyhd8_0"]
)
sha256s = st.one_of(
    st.text(_HEX, min_size=64, max_size=64), st.sampled_from(["0" * 64, "1" * 62 + "e1"])
)
md5s = st.text(_HEX, min_size=32, max_size=32)
specs = st.sampled_from(
    ["", ">=3.10,<3.11.0a0", "3.10.* *_cp310", "* *_llvm", "1.0", "yes", "null"]
)
texts = st.text(min_size=1, max_size=20)
words = st.from_regex(r"[A-Za-z0-9._-]{1,12}", fullmatch=True)
markers = st.sampled_from(
    [
        'python_full_version < "3.12"',
        "python_full_version >= '3.12' and platform_machine == 'aarch64'",
    ]
)


@st.composite
def conda_packages(draw: st.DrawFn, platform: Platform) -> CondaPackage:
    name, version, build = draw(names), draw(versions), draw(builds)
    channel = draw(st.sampled_from(["https://conda.anaconda.org/conda-forge", "file:///a/b c"]))
    suffix = draw(st.sampled_from([".conda", ".tar.bz2"]))
    stem = draw(st.sampled_from([f"{name}-{version}-{build}", f"other-{build}"]))
    sha256 = draw(st.none() | sha256s)
    depends = draw(st.dictionaries(names, specs, max_size=3))
    return CondaPackage(
        name=name,
        version=version,
        build=build,
        url=f"{channel}/{draw(st.sampled_from([platform, 'noarch']))}/{stem}{suffix}",
        sha256=sha256,
        md5=draw(md5s),
        size=None if sha256 else draw(st.integers(0, 10**12)),
        depends=tuple(f"{key} {value}".rstrip() for key, value in sorted(depends.items())),
    )


@st.composite
def pip_packages(draw: st.DrawFn, *, universal: bool) -> PipPackage:
    return PipPackage(
        name=draw(pip_names),
        version=draw(versions),
        hashes=tuple(sorted(draw(st.sets(sha256s, min_size=1, max_size=3)))),
        index=draw(st.none() | words),
        marker=draw(st.none() | markers) if universal else None,
        via=tuple(sorted(draw(st.sets(pip_names, max_size=3)))),
    )


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    host = draw(st.booleans())
    chosen = sorted(draw(st.sets(st.sampled_from(PLATFORMS), min_size=1)))
    asked = tuple(
        sorted(
            (key, json.dumps(value))
            for key, value in draw(st.dictionaries(words, texts, max_size=3)).items()
        )
    )
    universal = tuple(_sorted_pip(draw(st.lists(pip_packages(universal=True), max_size=4))))
    halves = []
    for platform in chosen:
        conda = (
            []
            if host
            else draw(
                st.lists(
                    conda_packages(platform),
                    max_size=3,
                    unique_by=(lambda one: one.name, lambda one: one.filename),
                )
            )
        )
        pip = (
            universal
            if host
            else _sorted_pip(draw(st.lists(pip_packages(universal=False), max_size=3)))
        )
        halves.append(
            PlatformLock(
                platform=platform,
                conda=tuple(sorted(conda, key=lambda one: one.name)),
                pip=pip,
                download_bytes=draw(st.none() | st.integers(min_value=0, max_value=2**50)),
            )
        )
    return Lock(
        name=draw(words),
        solve_digest=digest_of(asked),
        cutoff=draw(st.datetimes(min_value=datetime(2000, 1, 1), timezones=st.just(UTC))),  # noqa: DTZ001
        channels=("host",) if host else tuple(draw(st.lists(words, max_size=3, unique=True))),
        platforms=tuple(halves),
        asked=asked,
        host_python=draw(st.sampled_from(["", ">=3.11,<3.15"])) if host else None,
        uncut_indexes=tuple(sorted(draw(st.sets(words, max_size=2)))),
        compiler=draw(st.none() | texts),
        link_scripts=tuple(sorted(draw(st.sets(words, max_size=2)))),
    )


def _sorted_pip(packages: list[PipPackage]) -> tuple[PipPackage, ...]:
    unique = {(package.name, package.marker or ""): package for package in packages}
    return tuple(unique[key] for key in sorted(unique))
