"""Orders as JSON, findings let through, nothing to do, conda's list of environments."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from envbuild.errors import Refused, ToolFailed, ToolTimedOut
from envbuild.findings import Finding, Severity
from envbuild.packages import CondaPackage, PipPackage
from envbuild.store import bytecode, integrate, noop, order, orders, smoke
from envbuild.store import manifest as manifests
from envbuild.store.layout import Generation, Place, Store
from envbuild.store.manifest import Inputs, Interpreter, Manifest
from envbuild.store.order import Allowed, Order, OrderIndex
from envbuild.target import Need, Needs
from envbuild.tools.run import Completed

NEED = Need(value=None, origin=None)
ORDER = Order(
    name="demo",
    platform="linux-64",
    glibc="2.28",
    environment_digest="a" * 64,
    solve_digest="b" * 64,
    conda=(CondaPackage(name="zlib", version="1", build="0", url="u/l/z.conda", depends=("x",)),),
    pip=(PipPackage(name="numpy", version="2", hashes=("c" * 64,), via=("recipe",)),),
    needs=Needs(driver=Need(value=">=1", origin="recipe"), gpus=NEED, glibc=NEED, cuda=NEED),
    inputs=Inputs(recipe=(("/r/demo.yaml", "d" * 64),), lock=(("conda-lock.yml", "e" * 64),)),
    indexes=(OrderIndex(name="extra", url="https://x.invalid", packages=("app",)),),
    compiler="gcc 12",
    link_scripts=("zlib",),
    imports=("größe",),
    commands=("true",),
    allow=(Allowed(code="clobber", reason="known", until="2026-12-01", where="x"),),
    findings=(Finding(code="weak-hash", severity=Severity.WARNING, where="zlib", what="md5"),),
)


def test_an_order_is_read_as_it_was_written() -> None:
    assert order.loads(order.dumps(ORDER)) == ORDER


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"conda": 1}'])
def test_what_is_no_order_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        order.loads(text)


@pytest.mark.parametrize(
    ("where", "today", "severity"),
    [
        ("x", date(2026, 12, 1), Severity.NOTE),
        ("x", date(2026, 12, 2), Severity.ERROR),
        ("y", date(2026, 12, 1), Severity.ERROR),
    ],
)
def test_a_finding_is_let_through_there_and_until_then(
    where: str, today: date, severity: Severity
) -> None:
    finding = Finding(code="clobber", severity=Severity.ERROR, where=where, what="w")
    assert order.let_through((finding,), ORDER.allow, today=today)[0].severity is severity


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return a recipe's file and its lock's folder."""
    recipe = tmp_path / "recipes/demo.yaml"
    folder = tmp_path / "lockfiles/demo"
    recipe.parent.mkdir()
    folder.mkdir(parents=True)
    recipe.write_text("name: demo\n")
    (folder / "conda-lock.yml").write_text("lock\n")
    (folder / "requirements.linux-64.txt").write_text("numpy\n")
    (folder / "requirements.linux-aarch64.txt").write_text("numpy\n")
    return recipe, folder


def inputs(recipe: Path, folder: Path) -> Inputs:
    locks = noop.lock_files(folder, "linux-64")
    assert [path.name for path in locks] == ["conda-lock.yml", "requirements.linux-64.txt"]
    return Inputs(
        recipe=((f"{recipe}", noop.digest_of(recipe) or ""),),
        lock=tuple((path.name, noop.digest_of(path) or "") for path in locks),
    )


def test_an_order_is_recalled_for_just_these_files(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    recipe, folder = files
    store = Store(root=tmp_path / "store")
    locks = noop.lock_files(folder, "linux-64")
    kept = replace(ORDER, inputs=inputs(recipe, folder))
    assert orders.recall(store, recipe, locks, "linux-64") is None
    orders.keep(store, recipe, locks, kept)
    assert orders.recall(store, recipe, locks, "linux-64") == kept
    (folder / "requirements.linux-aarch64.txt").write_text("other\n")
    assert orders.recall(store, recipe, locks, "linux-64") == kept
    recipe.write_text("name: demo # edited\n")
    assert orders.recall(store, recipe, locks, "linux-64") is None


def test_an_order_of_a_recipe_whose_parent_changed_is_not_recalled(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    recipe, folder = files
    parent = tmp_path / "parent.yaml"
    parent.write_text("1")
    known = inputs(recipe, folder)
    chain = (*known.recipe, (f"{parent}", noop.digest_of(parent) or ""))
    store = Store(root=tmp_path / "store")
    locks = noop.lock_files(folder, "linux-64")
    kept = replace(ORDER, inputs=replace(known, recipe=chain))
    orders.keep(store, recipe, locks, kept)
    assert orders.recall(store, recipe, locks, "linux-64") == kept
    parent.write_text("2")
    assert orders.recall(store, recipe, locks, "linux-64") is None


def test_a_store_that_cannot_be_written_keeps_no_order(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    recipe, _ = files
    (tmp_path / "store").write_text("a file")
    orders.keep(Store(root=tmp_path / "store"), recipe, (), ORDER)
    assert orders.recall(Store(root=tmp_path / "store"), recipe, (), "linux-64") is None


@pytest.fixture
def made(tmp_path: Path, files: tuple[Path, Path]) -> Generation:
    """Return a current generation that was made of these files."""
    place = Store(root=tmp_path / "store").place("demo")
    generation = place.generation("a" * 16)
    generation.own.mkdir(parents=True)
    generation.environment.write_text("{}")
    write(generation, inputs(*files), None)
    place.current.symlink_to(f"generations/{generation.identifier}")
    integrate.link_by_name(place)
    return generation


def write(generation: Generation, made_of: Inputs, interpreter: Interpreter | None) -> None:
    manifests.write(
        generation,
        Manifest(
            name="demo",
            generation=generation.identifier,
            environment_digest="a" * 64,
            solve_digest="b" * 64,
            platform="linux-64",
            prefix=f"{generation.prefix}",
            created="2026-12-01T12:00:00Z",
            inputs=made_of,
            packages=(),
            files_sha256="",
            interpreter=interpreter,
        ),
    )


def unchanged(
    made: Generation, files: tuple[Path, Path], python: str | None = None, running: str = ""
) -> Generation | None:
    recipe, folder = files
    locks = noop.lock_files(folder, "linux-64")
    return noop.unchanged(made.place, recipe=recipe, locks=locks, python=python, running=running)


def test_nothing_to_do(made: Generation, files: tuple[Path, Path]) -> None:
    assert unchanged(made, files) == made
    assert unchanged(made, files, "/usr/bin/python3") == made


def test_a_create_that_was_killed_before_its_last_step_is_something_to_do(
    made: Generation, files: tuple[Path, Path]
) -> None:
    made.place.by_name.unlink()
    assert unchanged(made, files) is None


def test_a_python_that_has_to_count_is_something_to_do(
    made: Generation, files: tuple[Path, Path]
) -> None:
    locks = noop.lock_files(files[1], "linux-64")
    python = "/usr/bin/python3"
    found = noop.unchanged(made.place, recipe=files[0], locks=locks, python=python, insisted=True)
    assert found is None


@pytest.mark.parametrize("name", ["conda-lock.yml", "requirements.linux-64.txt"])
def test_an_edited_or_missing_lock_is_something_to_do(
    made: Generation, files: tuple[Path, Path], name: str
) -> None:
    path = files[1] / name
    path.write_text("edited")
    assert unchanged(made, files) is None
    path.unlink()
    assert unchanged(made, files) is None


def test_what_else_is_something_to_do(made: Generation, files: tuple[Path, Path]) -> None:
    assert noop.unchanged(made.place, recipe=files[0].parent / "other.yaml", locks=()) is None
    assert unchanged(replace(made, place=Store(root=files[1]).place("demo")), files) is None
    write(made, Inputs(recipe=(), lock=()), None)
    assert unchanged(made, files) is None
    write(made, inputs(*files), None)
    assert unchanged(made, files) == made
    made.environment.unlink()
    assert unchanged(made, files) is None


def test_a_newer_reinstall_is_something_to_do(made: Generation, files: tuple[Path, Path]) -> None:
    other = made.place.generation(f"{made.identifier}-10")
    other.own.mkdir(parents=True)
    assert unchanged(made, files) == made
    write(other, inputs(*files), None)
    assert unchanged(made, files) is None


def test_a_moved_store_is_something_to_do(made: Generation, files: tuple[Path, Path]) -> None:
    root = made.place.store.root
    root.rename(root.with_name("moved"))
    moved = Store(root=root.with_name("moved")).place("demo").generation(made.identifier)
    assert unchanged(moved, files) is None


def test_the_interpreter_counts(made: Generation, files: tuple[Path, Path], tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("1")
    stamps = manifests.stamps((python, tmp_path / "recipes"))
    interpreter = Interpreter(path=f"{python}", version="3.11.1", digest="x", stamps=stamps)
    write(made, inputs(*files), interpreter)
    assert unchanged(made, files) == made
    assert unchanged(made, files, f"{python}") == made
    assert unchanged(made, files, "/usr/bin/python3") is None
    python.write_text("22")
    assert unchanged(made, files) is None
    python.unlink()
    assert unchanged(made, files) is None


@pytest.mark.parametrize(
    ("origin", "same"),
    [
        ("--python", False),
        ("ENVBUILD_PYTHON", False),
        ("running", False),
        ("channel add-python", True),
        ("PATH", True),
    ],
)
def test_an_interpreter_that_was_named_is_not_taken_again_unnamed(
    made: Generation, files: tuple[Path, Path], origin: str, *, same: bool
) -> None:
    stamps = manifests.stamps((files[0],))
    interpreter = Interpreter(
        path="/opt/python3", version="3.12.1", digest="x", stamps=stamps, origin=origin
    )
    write(made, inputs(*files), interpreter)
    assert unchanged(made, files, "/opt/python3", running="/usr/bin/python3.11") == made
    assert unchanged(made, files, running="/opt/python3") == made
    assert unchanged(made, files, running="/usr/bin/python3.11") == (made if same else None)


def test_a_recipe_s_file_by_name_and_by_path(files: tuple[Path, Path], tmp_path: Path) -> None:
    recipe, _ = files
    folders = (tmp_path / "nothing", recipe.parent)
    assert noop.recipe_file("demo", folders) == recipe
    assert noop.recipe_file(f"{recipe}", ()) == recipe
    assert noop.recipe_file("other", folders) is None
    assert noop.digest_of(tmp_path) is None


def test_conda_s_list_keeps_the_lines_of_others(tmp_path: Path) -> None:
    place = Store(root=tmp_path / "store").place("demo")
    path = tmp_path / ".conda/environments.txt"
    path.parent.mkdir()
    path.write_text("/opt/other\n")
    integrate.register(place, home=tmp_path)
    integrate.register(place, home=tmp_path)
    assert path.read_text() == f"/opt/other\n{place.by_name}\n"
    integrate.unregister(place, home=tmp_path)
    assert path.read_text() == "/opt/other\n"
    path.write_bytes(b"\xff\n")
    integrate.register(place, home=tmp_path)
    assert path.read_bytes() == b"\xff\n"


def test_a_home_that_is_none_is_left_alone(tmp_path: Path) -> None:
    place = Store(root=tmp_path / "store").place("demo")
    integrate.register(place, home=tmp_path / "nobody")
    assert not (tmp_path / "nobody").exists()
    (tmp_path / ".conda").write_text("a file")
    integrate.register(place, home=tmp_path)
    assert (tmp_path / ".conda").read_text() == "a file"


def test_the_link_by_name_is_made_once_and_mended(tmp_path: Path) -> None:
    place: Place = Store(root=tmp_path).place("demo")
    integrate.link_by_name(place)
    before = place.by_name.lstat().st_ino
    integrate.link_by_name(place)
    assert place.by_name.lstat().st_ino == before
    place.by_name.unlink()
    place.by_name.symlink_to("/elsewhere")
    integrate.link_by_name(place)
    assert place.by_name.readlink() == Path("../envs/demo/current")


class Python:
    """Stands for a program that answers, or fails, in some way."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.argv: list[tuple[str, ...]] = []
        self.env: Mapping[str, str] = {}
        self.stdin: str | None = None

    def __call__(
        self,
        argv: Sequence[object],
        *,
        env: Mapping[str, str],
        stdin: str | None = None,
        **_: object,
    ) -> Completed:
        self.argv.append(tuple(map(str, argv)))
        self.env, self.stdin = env, stdin
        if isinstance(self.answer, Exception):
            raise self.answer
        return Completed(argv=self.argv[-1], status=0, stdout=self.answer, stderr="")


def test_the_smoke_test_is_one_import_process_then_the_commands() -> None:
    python = Python("")
    smoke.smoke_test(
        Path("/p"),
        imports=("a", "b"),
        commands=("tool 'with space' $HOME",),
        environment={"PATH": "/p/bin"},
        log=Path("/log"),
        run=python,
    )
    assert python.argv[0][0] == "/p/bin/python"
    assert python.argv[0][-2:] == ("a", "b")
    assert python.argv[1:] == [("tool", "with space", "$HOME")]
    assert python.env == {"PATH": "/p/bin", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ToolTimedOut("x"), "did not end within 600 s"),
        (ToolFailed("x", status=2), "ended with status 2"),
        (ToolFailed("x", status=-11), "ended by signal 11"),
        (PermissionError(13, "Permission denied"), "could not be started: Permission denied"),
    ],
)
def test_how_a_command_of_the_smoke_test_fails(error: Exception, message: str) -> None:
    with pytest.raises(Refused, match=message):
        smoke.smoke_test(
            Path("/p"),
            imports=(),
            commands=("tool",),
            environment={},
            log=Path("/log"),
            run=Python(error),
        )


def test_sources_that_are_compiled() -> None:
    paths = ["lib/python3.11/a.py", "lib/python3.11/a.txt", "share/x.py", "bin/y.py"]
    assert bytecode.sources(paths) == ["lib/python3.11/a.py"]
    python = Python("2\n")
    made = bytecode.compile_sources(Path("/p"), ["a.py", "b.py"], environment={}, run=python)
    assert (made, python.stdin) == (2, "/p/a.py\0/p/b.py")
    assert bytecode.compile_sources(Path("/p"), [], environment={}, run=python) == 0
    with pytest.raises(ToolFailed, match="no answer"):
        bytecode.compile_sources(Path("/p"), ["a.py"], environment={}, run=Python("?"))
