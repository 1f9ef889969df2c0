"""What uv is asked, as text."""

import tomllib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from envbuild.packages import PipPackage
from envbuild.target import Platform, Target
from envbuild.tools.run import Completed
from envbuild.tools.uv_failure import failure, undated_files
from envbuild.tools.uv_question import (
    Question,
    Source,
    index_tables,
    instant,
    options,
    pins,
    platform_name,
    requirements_text,
)

CUTOFF = datetime(2026, 1, 1, tzinfo=UTC)
DEFAULT = Source(name=None, url="https://me:s3cret@mirror.example/simple")
CORP = Source(
    name="corp", url="https://corp.example/simple/", packages=frozenset({"b", "a"}), cutoff="none"
)


def question(**changes: object) -> Question:
    fields: dict[str, object] = {
        "requirements": ['numpy ; python_version < "3.12"'],
        "python": "3.11.9",
        "platform": "x86_64-manylinux_2_28",
        "cutoff": CUTOFF,
        "sources": (DEFAULT, CORP),
    }
    return Question(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("glibc", "platform", "expected"),
    [
        ("2.17", "linux-64", "x86_64-manylinux_2_17"),
        ("2.27", "linux-64", "x86_64-manylinux_2_17"),
        ("2.28", "linux-aarch64", "aarch64-manylinux_2_28"),
        ("2.30", "linux-64", "x86_64-manylinux_2_28"),
        ("2.36", "linux-64", "x86_64-manylinux_2_36"),
        ("2.99", "linux-64", "x86_64-manylinux_2_40"),
        ("2.12", "linux-64", "x86_64-manylinux_2_17"),
    ],
)
def test_the_glibc_floor_is_rounded_down(glibc: str, platform: Platform, expected: str) -> None:
    assert platform_name(Target(platform=platform, glibc=glibc)) == expected


def test_instants_are_utc_whatever_the_zone() -> None:
    assert instant(CUTOFF) == "2026-01-01T00:00:00Z"
    assert instant(CUTOFF.astimezone(timezone(timedelta(hours=9)))) == "2026-01-01T00:00:00Z"
    assert instant(CUTOFF + timedelta(milliseconds=5)) == "2026-01-01T00:00:00.005000Z"


def test_the_project_binds_packages_to_their_index(tmp_path: Path) -> None:
    words = options(question(rooted={"a": "sys_platform == 'win32'", "b": ""}), tmp_path)
    project = tomllib.loads((tmp_path / words[-1]).read_text())
    assert project["project"]["dependencies"] == [
        'numpy ; python_version < "3.12"',
        "a ; sys_platform == 'win32'",
        "b",
    ]
    assert project["tool"]["uv"]["sources"] == {"a": {"index": "corp"}, "b": {"index": "corp"}}
    assert [index["name"] for index in project["tool"]["uv"]["index"]] == ["corp"]
    assert words[:2] == ["--python-platform", "x86_64-manylinux_2_28"]


def test_the_configuration_has_indexes_only() -> None:
    tables = tomllib.loads(index_tables((Source(name=None, url=None), CORP)))
    assert list(tables) == ["index"]
    assert tables["index"][0]["exclude-newer"] is False
    dated = Source(name="corp", url="https://x", cutoff=CUTOFF)
    assert 'exclude-newer = "2026-01-01T00:00:00Z"' in index_tables((dated,))
    assert tomllib.loads(index_tables((DEFAULT, CORP)))["index"][1]["default"] is True


def test_a_universal_question(tmp_path: Path) -> None:
    words = options(question(universal=True, platform=None, not_emitted=("torch",)), tmp_path)
    assert words[:-1] == [
        "--universal",
        "--fork-strategy",
        "fewest",
        "--no-emit-package",
        "torch",
    ]


def test_old_pins(tmp_path: Path) -> None:
    assert pins(question(), tmp_path) == []
    old = (
        PipPackage(name="a", version="1", hashes=(), index="corp", marker="python_version < '3'"),
        PipPackage(name="n", version="2", hashes=()),
    )
    assert pins(question(pins=old), tmp_path) == ["--output-file", "pylock.toml"]
    assert tomllib.loads((tmp_path / "pylock.toml").read_text())["packages"] == [
        {
            "name": "a",
            "version": "1",
            "marker": "python_version < '3'",
            "index": "https://corp.example/simple/",
        },
        {"name": "n", "version": "2"},
    ]


def test_requirements_with_hashes() -> None:
    packages = (
        PipPackage(name="a", version="1", hashes=("aa", "bb")),
        PipPackage(name="b", version="2", hashes=("cc",), marker="python_version < '3.12'"),
    )
    assert requirements_text(packages) == (
        "a==1 --hash=sha256:aa --hash=sha256:bb\nb==2 ; python_version < '3.12' --hash=sha256:cc\n"
    )


def test_no_login_and_no_address_in_a_failure() -> None:
    text = (
        "error: Request failed after 3 retries in 1s\n"
        "  cause: Failed to fetch: https://me:s3cret@mirror.example/simple/app/\n"
    )
    done = Completed(argv=("uv",), status=2, stdout="", stderr=text)
    error = failure(done, (DEFAULT, CORP))
    assert error.message.startswith("the default index cannot be reached")
    assert "s3cret" not in error.details
    assert "mirror.example" not in error.details
    assert "<the default index>/app/" in error.details


def test_the_index_in_uvs_text_is_blamed() -> None:
    text = "error: Failed to fetch: `https://corp.example/simple/app/`\n"
    done = Completed(argv=("uv",), status=2, stdout="", stderr=text)
    assert failure(done, (DEFAULT, CORP)).message.startswith("index corp cannot be reached")


def test_what_the_network_is_needed_for_says_so_offline() -> None:
    text = (
        "error: Failed to download `https://corp.example/simple/a.whl` to compute missing hashes\n"
        "  cause: Network connectivity is disabled, but the requested data wasn't found\n"
    )
    error = failure(Completed(argv=("uv",), status=1, stdout="", stderr=text), (DEFAULT, CORP))
    assert error.exit_code == 8
    assert error.hint == "run it once without --offline"


def test_what_cannot_be_solved_is_told_without_uvs_own_options() -> None:
    text = (
        "error: No solution found when resolving dependencies\n"
        "  cause: Because all versions of a have no usable wheels, there is none.\n\n"
        "hint: Wheels are required for `a` because building from source is disabled for all "
        "packages (i.e., with `--no-build`)\n"
    )
    error = failure(Completed(argv=("uv",), status=1, stdout="", stderr=text), (DEFAULT,))
    assert error.exit_code == 4
    assert error.details == (
        "Because all versions of a have no usable wheels, there is none.\n\n"
        "hint: Wheels are required for `a` because envbuild takes wheels only"
    )


def test_what_is_none_of_these_is_a_failed_tool() -> None:
    done = Completed(argv=("uv",), status=2, stdout="", stderr="error: a panic\n")
    error = failure(done, (DEFAULT,))
    assert error.exit_code == 5
    assert error.details == "error: a panic"


def test_files_without_upload_times() -> None:
    text = "warning: `b-1.whl` is missing an upload date, but user provided: x\n" * 2
    assert undated_files(f"{text}warning: `a-1.whl` is missing an upload date\n") == (
        "a-1.whl",
        "b-1.whl",
    )
