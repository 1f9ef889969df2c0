"""What differs between two locks, as text and as data."""

from dataclasses import replace

from hypothesis import given, settings
from unit.lock.strategies import locks
from unit.lock.test_lock_files import sample, universal

from envbuild.lock.diff import diff
from envbuild.lock.model import Lock, PlatformLock
from envbuild.packages import CondaPackage, PipPackage


@given(locks())
@settings(max_examples=15, deadline=None)
def test_a_lock_does_not_differ_from_itself(lock: Lock) -> None:
    same = diff(lock, lock)
    assert not same
    assert same.text() == ""
    assert same.as_json() == {"packages": [], "fields": []}


@given(locks(), locks())
@settings(max_examples=15, deadline=None)
def test_locks_that_differ_do(one: Lock, other: Lock) -> None:
    named = replace(other, name=one.name)
    found = diff(one, named)
    assert bool(found) == (one != named)
    back = {"added": "removed", "removed": "added", "changed": "changed"}
    mirrored = {
        (change.platform, change.half, back[change.kind], change.name)
        for change in diff(named, one).changes
    }
    assert mirrored == {
        (change.platform, change.half, change.kind, change.name) for change in found.changes
    }


def half(conda: tuple[CondaPackage, ...], pip: tuple[PipPackage, ...]) -> tuple[PlatformLock, ...]:
    return (PlatformLock(platform="linux-64", conda=conda, pip=pip),)


def test_every_kind_of_change_as_text() -> None:
    old = sample()
    (platform,) = old.platforms
    weak, python = platform.conda
    accelerate, ours = platform.pip
    new = replace(
        old,
        compiler=None,
        asked=(("conda", '["numpy <3"]'), ("python", '"3.10"')),
        platforms=half(
            (
                replace(weak, md5="9" * 32),
                replace(python, build="h7_1", url=python.url.replace("h1234567_0", "h7_1")),
                replace(python, name="zlib", version="1.3"),
            ),
            (replace(accelerate, hashes=accelerate.hashes[:1]), replace(ours, index=None)),
        ),
    )
    assert diff(old, new).text() == (
        "conda, linux-64:\n"
        "  ~ cuda-nvtx 12.4.99 md5:000000000000 -> 12.4.99 md5:999999999999\n"
        "  ~ python 3.10 h1234567_0_cpython -> 3.10 h7_1\n"
        "  + zlib 1.3\n"
        "pypi, linux-64:\n"
        "  ~ accelerate 1.0 (2 wheels, bbbbbbbbbbbb) -> 1.0 (1 wheels)\n"
        "  ~ ours 1.2.post1 from company -> 1.2.post1 from the default index\n"
        "compiler: gcc 12 -> none\n"
        'recipe\'s conda: ["numpy <2"] -> ["numpy <3"]'
    )


def test_versions_and_removals() -> None:
    old = sample()
    (platform,) = old.platforms
    moved = replace(platform.conda[1], version="3.11")
    new = replace(old, platforms=half((moved,), ()))
    assert diff(old, new).text() == (
        "conda, linux-64:\n  - cuda-nvtx 12.4.99\n  ~ python 3.10 -> 3.11\n"
        "pypi, linux-64:\n  - accelerate 1.0\n  - ours 1.2.post1"
    )


def test_what_is_needed_and_who_asks() -> None:
    old = sample()
    (platform,) = old.platforms
    conda = (platform.conda[0], replace(platform.conda[1], depends=("openssl",)))
    pip = (replace(platform.pip[0], via=()), platform.pip[1])
    text = diff(old, replace(old, platforms=half(conda, pip))).text()
    assert "3.10 needing openssl" in text
    assert "1.0 via recipe -> 1.0 via nothing" in text


def test_equal_changes_of_platforms_stand_together() -> None:
    lock = universal()
    text = diff(None, lock).text()
    assert text.startswith("pypi, linux-64 and linux-aarch64:\n  + numpy 2.4.6 ; python_version")
    assert text.count("+ numpy") == 2


def test_as_json() -> None:
    lock = universal()
    later = replace(lock, cutoff=lock.cutoff.replace(day=2), platforms=lock.platforms[:1])
    assert diff(lock, later).as_json() == {
        "packages": [
            {
                "platform": "linux-aarch64",
                "half": "pypi",
                "change": "removed",
                "name": "numpy",
                "old": f'{version} ; python_version {sign} "3.12"',
                "new": None,
            }
            for version, sign in (("2.4.6", "<"), ("2.5.4", ">="))
        ],
        "fields": [
            {"name": "cutoff", "old": "2026-12-01T00:00:00Z", "new": "2026-12-02T00:00:00Z"}
        ],
    }
