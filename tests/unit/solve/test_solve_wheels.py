"""Which wheels a target can use, and what a `pylock.toml` says."""

import pytest

from envbuild.errors import FetchError, NoSolution
from envbuild.solve.wheels import Wheel, platform_tags, refuse, releases, usable
from envbuild.target import Platform, Target


def wheel(tag: str) -> Wheel:
    return Wheel(filename=f"app-1.0-{tag}.whl", url="", sha256=None, size=None, uploaded=None)


@pytest.mark.parametrize(
    ("tag", "platform", "fits"),
    [
        ("py3-none-any", "linux-64", True),
        ("py2.py3-none-any", "linux-64", True),
        ("py2-none-any", "linux-64", False),
        ("py312-none-any", "linux-64", False),
        ("py38-none-any", "linux-64", True),
        ("cp311-cp311-manylinux_2_28_x86_64", "linux-64", True),
        ("cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64", "linux-64", True),
        ("cp311-cp311-manylinux1_x86_64", "linux-64", True),
        ("cp311-cp311-manylinux_2_29_x86_64", "linux-64", False),
        ("cp311-cp311-linux_x86_64", "linux-64", True),
        ("cp311-cp311-manylinux_2_17_aarch64", "linux-64", False),
        ("cp311-cp311-manylinux_2_17_aarch64", "linux-aarch64", True),
        ("cp311-cp311-manylinux2014_aarch64", "linux-aarch64", True),
        ("cp39-abi3-manylinux_2_17_x86_64", "linux-64", True),
        ("cp312-abi3-manylinux_2_17_x86_64", "linux-64", False),
        ("cp310-cp310-manylinux_2_17_x86_64", "linux-64", False),
        ("cp311-none-any", "linux-64", True),
        ("py3-none-manylinux_2_17_x86_64", "linux-64", True),
        ("py3-none-musllinux_1_2_x86_64", "linux-64", False),
        ("pp311-pypy311_pp73-manylinux_2_17_x86_64", "linux-64", False),
        ("cp311-cp311-win_amd64", "linux-64", False),
        ("cp311-cp311-macosx_11_0_universal2", "linux-64", False),
        ("nonsense", "linux-64", False),
    ],
)
def test_tags(tag: str, platform: Platform, *, fits: bool) -> None:
    target = Target(platform=platform, glibc="2.28")
    assert bool(usable([wheel(tag)], target, (3, 11))) is fits


def test_platform_tags() -> None:
    assert platform_tags("linux-aarch64", "2.18") == (
        "manylinux_2_18_aarch64",
        "manylinux_2_17_aarch64",
        "manylinux2014_aarch64",
        "linux_aarch64",
    )
    assert platform_tags("linux-64", "2.5")[:2] == ("manylinux_2_5_x86_64", "manylinux1_x86_64")


def test_a_pylock() -> None:
    text = """
lock-version = "1.0"
[[packages]]
name = "app"
version = "1.0"
marker = "sys_platform == 'linux'"
wheels = [
  { url = "https://x/a%2Bb/app-1.0+cu12-py3-none-any.whl#frag", size = 5, \
upload-time = 2026-01-01T09:00:00+09:00, hashes = { sha256 = "ab" } },
  { name = "app-1.0-cp311-none-any.whl", path = "app.whl" },
]
"""
    (release,) = releases(text)
    assert (release.name, release.version, release.marker) == (
        "app",
        "1.0",
        "sys_platform == 'linux'",
    )
    first, second = release.wheels
    assert first.filename == "app-1.0+cu12-py3-none-any.whl"
    assert first.uploaded is not None
    assert first.uploaded.isoformat() == "2026-01-01T00:00:00+00:00"
    assert (second.filename, second.sha256, second.size) == (
        "app-1.0-cp311-none-any.whl",
        None,
        None,
    )


def test_what_comes_from_no_index() -> None:
    text = '[[packages]]\nname = "app"\nversion = "1"\narchive = {url = "https://x/app.whl"}\n'
    with pytest.raises(FetchError, match="app comes from an address of its own"):
        releases(text)


def test_refusals() -> None:
    refuse([])
    with pytest.raises(NoSolution) as caught:
        refuse(["a", "b"])
    assert caught.value.details == "a\nb"
