"""What a change that did not come to its end leaves, and what the next command makes of it."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import pytest
from unit.units.rendering import rendered

from envbuild.errors import StoreError
from envbuild.tools import boot
from envbuild.tools.run import Completed
from envbuild.tools.systemd import Systemd
from envbuild.units import placing, record
from envbuild.units.record import Pending, Record

_UNIT = "envbuild-x.a.service"
_OLD, _NEW = "0123456789abcdef", "1" * 16


def _pending(folder: Path) -> tuple[str, str]:
    """Leave a change from one generation to another, with its files written; return their texts."""
    before = rendered("services: {a: {exec: x}}")[_UNIT]
    after = before.replace(_OLD, _NEW)
    (folder / _UNIT).write_text(after)
    record.write(
        folder,
        Record(
            name="x",
            store="/var/lib/envbuild",
            generation=_OLD,
            files={_UNIT: "-"},
            enabled=(_UNIT,),
            pending=Pending(before={_UNIT: before}, moves_to=_NEW),
        ),
    )
    return before, after


@pytest.mark.parametrize("current", [_OLD, None])
def test_it_is_undone_before_current_moved(tmp_path: Path, current: str | None) -> None:
    before, _ = _pending(tmp_path)
    found = placing.recover(tmp_path, "x", systemd=None, current=current)
    assert (tmp_path / _UNIT).read_text() == before
    assert found is not None
    assert (found.generation, found.pending) == (_OLD, None)
    assert record.read(tmp_path, "x") == found


def test_it_is_done_once_current_moved(tmp_path: Path) -> None:
    _, after = _pending(tmp_path)
    found = placing.recover(tmp_path, "x", systemd=None, current=_NEW)
    assert (tmp_path / _UNIT).read_text() == after
    assert found is not None
    assert (found.generation, found.enabled, found.pending) == (_NEW, (_UNIT,), None)


def test_a_first_install_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / _UNIT).write_text(rendered("services: {a: {exec: x}}")[_UNIT])
    pending = Pending(before={_UNIT: None}, enabled=(_UNIT,))
    record.write(tmp_path, Record(name="x", store="/s", pending=pending))
    assert placing.recover(tmp_path, "x", systemd=None) is None
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_damaged_record_is_told(tmp_path: Path) -> None:
    (tmp_path / record.FOLDER).mkdir()
    record.path_of(tmp_path, "x").write_text('{"version": 1, "name"')
    with pytest.raises(StoreError, match="damaged"):
        record.read(tmp_path, "x")
    assert record.others(tmp_path, "y") == ()


def test_a_removal_that_did_not_end_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = rendered("services: {a: {exec: x}}")[_UNIT]
    (tmp_path / _UNIT).write_text(text)
    installed = Record(name="x", store="/s", files={_UNIT: "-"}, enabled=(_UNIT,))
    record.write(tmp_path, installed)

    def lost(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(record, "remove", lost)
        with pytest.raises(KeyboardInterrupt):
            placing.remove(tmp_path, "x", systemd=Systemd(runner=_quiet))
    assert not (tmp_path / _UNIT).exists()
    found = placing.recover(tmp_path, "x", systemd=None)
    assert (tmp_path / _UNIT).read_text() == text
    assert found == installed
    placing.remove(tmp_path, "x", systemd=Systemd(runner=_quiet))
    assert record.read(tmp_path, "x") is None


@pytest.mark.parametrize(
    ("booted", "restarted"), [("same", {"a", "c"}), ("another", {"a", "b", "c"})]
)
def test_what_was_not_started_since_is_left_alone(
    tmp_path: Path, booted: str, restarted: set[str]
) -> None:
    """`b` went on as it was; `c` was started again by itself, and so as it was not to be."""
    was = rendered("services: {a: {exec: x}, b: {exec: x}, c: {exec: x}}")
    units = [unit for unit in was if unit.endswith(".service")]
    for unit in units:
        (tmp_path / unit).write_text(was[unit].replace(_OLD, _NEW))
    pending = Pending(
        before={unit: was[unit] for unit in units},
        boot=boot.identity() if booted == "same" else booted,
        began_us=1000,
    )
    record.write(tmp_path, Record(name="x", store="/s", generation=_OLD, pending=pending))
    started = {"a": (1200, 1300), "b": (100, 200), "c": (100, 1100)}
    done: set[str] = set()

    def runner(argv: Sequence[str | PathLike[str]], **_: object) -> Completed:
        words = [*map(str, argv)]
        text = ""
        if "show" in words:
            for unit in words[words.index("--") + 1 :]:
                left, ran = started[unit.split(".")[1]]
                text += f"Id={unit}\nActiveState=active\nInactiveExitTimestampMonotonic={left}\n"
                text += f"ExecMainStartTimestampMonotonic={ran}\n\n"
        if "restart" in words:
            done.update(word.split(".")[1] for word in words if word.endswith(".service"))
        return Completed(argv=tuple(words), status=0, stdout=text, stderr="")

    placing.recover(tmp_path, "x", systemd=Systemd(runner=runner))
    assert done == restarted
    assert all((tmp_path / unit).read_text() == was[unit] for unit in units)


def _quiet(argv: Sequence[str | PathLike[str]], **_: object) -> Completed:
    """Stand in for systemd's programs, which then do all that they are told."""
    return Completed(argv=tuple(map(str, argv)), status=0, stdout="", stderr="")
