import os
from pathlib import Path

import generations as made
import pytest

from envbuild.errors import StoreError
from envbuild.findings import Severity
from envbuild.progress import Quiet
from envbuild.store import leftovers, manifest
from envbuild.store.layout import Generation
from envbuild.store.verify import verify


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    return made.make(made.place_in(tmp_path), made.FIRST)


def _codes(generation: Generation) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in verify(generation)]


def test_an_untouched_generation_has_no_finding(generation: Generation) -> None:
    assert verify(generation) == ()


def test_a_generation_is_read_while_somebody_looks_whether_it_may_go(
    generation: Generation,
) -> None:
    read = manifest.read(generation)
    with leftovers.hidden([generation]):
        assert not generation.manifest.exists()
        assert manifest.read(generation) == read
        assert verify(generation) == ()


def test_a_changed_byte_is_found_though_size_and_time_stay(generation: Generation) -> None:
    path = generation.prefix / made.SOURCE
    before = path.stat()
    path.write_text("x = 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    (finding,) = verify(generation)
    assert (finding.code, finding.where) == ("file-changed", made.SOURCE)
    assert "pypi:pkg" in finding.what


def test_another_size_is_a_changed_file(generation: Generation) -> None:
    (generation.prefix / made.SOURCE).write_text("x = 12345\n")
    assert _codes(generation) == [("file-changed", made.SOURCE)]


def test_a_missing_file_is_named_with_its_package(generation: Generation) -> None:
    (generation.prefix / made.PROGRAM).unlink()
    (finding,) = verify(generation)
    assert (finding.code, finding.where) == ("file-missing", made.PROGRAM)
    assert "conda:hello" in finding.what


def test_a_foreign_file_is_named(generation: Generation) -> None:
    (generation.prefix / "bin/evil").write_text("")
    (generation.prefix / "lib/evil-link").symlink_to("/etc/passwd")
    os.mkfifo(generation.prefix / "bin/pipe")
    assert _codes(generation) == [
        ("file-foreign", "bin/evil"),
        ("file-foreign", "bin/pipe"),
        ("file-foreign", "lib/evil-link"),
    ]


@pytest.mark.parametrize(
    ("name", "foreign"),
    [
        ("__pycache__/__init__.cpython-311.pyc", False),
        ("__pycache__/__init__.cpython-311.opt-2.pyc", False),
        ("__pycache__/__init__.cpython-311.pyc.140123", False),
        ("__pycache__/other.cpython-311.pyc", True),
        ("__pycache__/__init__.cpython-311.so", True),
        ("__init__.pyc", True),
        ("__init__.cpython-311.pyc", True),
    ],
)
def test_bytecode_of_a_known_source_is_not_foreign(
    generation: Generation, name: str, *, foreign: bool
) -> None:
    path = (generation.prefix / made.SOURCE).parent / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    assert bool(verify(generation)) is foreign


def test_our_own_files_and_conda_meta_are_not_foreign(generation: Generation) -> None:
    (generation.own / "pinned.json").write_text("{}")
    (generation.prefix / "conda-meta").mkdir()
    (generation.prefix / "conda-meta/history").write_text("")
    assert verify(generation) == ()


def test_compiled_bytecode_is_checked_as_it_is_run(generation: Generation) -> None:
    cache = (generation.prefix / made.SOURCE).parent / "__pycache__"
    cache.mkdir()
    path = cache / "__init__.cpython-311.pyc"
    path.write_bytes(b"code")
    made.complete(generation)
    path.write_bytes(b"evil")
    assert [finding.code for finding in verify(generation)] == ["file-changed"]
    path.unlink()
    (finding,) = verify(generation)
    assert (finding.code, finding.severity) == ("file-missing", Severity.WARNING)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o700, 0o4755, 0o644])
def test_another_mode_is_named(generation: Generation, mode: int) -> None:
    (generation.prefix / made.PROGRAM).chmod(mode)
    (finding,) = verify(generation)
    assert (finding.code, finding.where) == ("mode-changed", made.PROGRAM)
    assert f"{mode:04o}" in finding.what


def test_a_program_that_others_may_write_is_named_even_if_it_was_listed_so(
    generation: Generation,
) -> None:
    (generation.prefix / made.PROGRAM).chmod(0o775)
    made.complete(generation)
    assert _codes(generation) == [("mode-changed", made.PROGRAM)]


def test_a_folder_that_others_may_write_is_named(generation: Generation) -> None:
    (generation.prefix / "bin").chmod(0o777)
    assert _codes(generation) == [("mode-changed", "bin")]


def test_a_users_umask_may_open_pycache_to_the_group_only(generation: Generation) -> None:
    cache = (generation.prefix / made.SOURCE).parent / "__pycache__"
    cache.mkdir()
    cache.chmod(0o775)
    assert verify(generation) == ()
    cache.chmod(0o777)
    assert [finding.code for finding in verify(generation)] == ["mode-changed"]


def test_a_link_that_leads_elsewhere_is_named(generation: Generation) -> None:
    link = generation.prefix / made.LINK
    link.unlink()
    link.symlink_to("./hello")
    (finding,) = verify(generation)
    assert (finding.code, finding.what) == (
        "link-changed",
        "points to ./hello, not to hello (conda:hello)",
    )


def test_a_link_and_a_file_are_not_taken_for_each_other(generation: Generation) -> None:
    link, program = generation.prefix / made.LINK, generation.prefix / made.PROGRAM
    content = program.read_bytes()
    link.unlink()
    link.write_bytes(content)
    link.chmod(0o755)
    program.rename(program.with_name("real"))
    program.symlink_to("real")
    assert _codes(generation) == [
        ("file-changed", made.PROGRAM),
        ("link-changed", made.LINK),
        ("file-foreign", "bin/real"),
    ]


def test_a_moved_generation_says_where_it_was_made_for(generation: Generation) -> None:
    store = generation.place.store.root
    store.rename(store.with_name("elsewhere"))
    moved = made.place_in(store.parent / "x").store.root
    moved.parent.mkdir()
    store.with_name("elsewhere").rename(moved)
    (finding,) = verify(made.place_in(store.parent / "x").generation(made.FIRST))
    assert finding.code == "generation-moved"
    assert f"was made for {generation.prefix}" in finding.what


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_not_fine(generation: Generation) -> None:
    (generation.prefix / made.SOURCE).chmod(0o000)
    codes = {finding.code for finding in verify(generation)}
    assert codes == {"file-unreadable", "mode-changed"}


def test_what_cannot_be_read_gives_its_reason(
    generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("/bin/"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = {finding.where: finding for finding in verify(generation)}
    assert found["bin"].code == "file-unreadable"
    assert "Permission denied" in found["bin"].what


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 99}', '{"version": 1}'])
def test_a_damaged_manifest_is_one_error(generation: Generation, text: str) -> None:
    generation.manifest.write_text(text)
    with pytest.raises(StoreError) as caught:
        verify(generation)
    assert caught.value.exit_code == 6
    assert "\n" not in caught.value.message


def test_a_list_that_is_not_the_manifests_is_an_error(generation: Generation) -> None:
    path = generation.own / manifest.FILES
    path.write_text(path.read_text() + " ")
    with pytest.raises(StoreError, match="not the list"):
        verify(generation)
    path.unlink()
    with pytest.raises(StoreError, match="missing"):
        verify(generation)


def test_progress_counts_every_byte(generation: Generation) -> None:
    seen: list[tuple[int, int | None]] = []

    class Counter(Quiet):
        def amount(self, what: str, done: int, total: int | None) -> None:
            assert what
            seen.append((done, total))

    verify(generation, progress=Counter(), workers=1)
    total = manifest.read(generation).file_bytes
    assert seen[-1] == (total, total)
