"""uv: solving the PyPI half, and installing it with hashes.

uv gets an empty environment and a configuration file with index addresses only, so that no user
setting, no folder and no project around us can change a result.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from envbuild.access import Access
from envbuild.errors import FetchError, NoSolution, ToolFailed, ToolMissing
from envbuild.packages import PipPackage
from envbuild.target import Target
from envbuild.tools import index_pages
from envbuild.tools import run as runner
from envbuild.tools.network_watch import NetworkWatch
from envbuild.tools.scratch import scratch
from envbuild.tools.uv_failure import Undated, failure, undated_files
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

_CONNECT_TIMEOUT_S = 10
_YANKED = re.compile(
    r"^warning: `([^`=]+)==([^`]+)` is yanked(?: \(reason: \"(.*)\"\))?", re.MULTILINE
)
_FROM = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+).*\n\s+# from (?P<url>\S+)$", re.MULTILINE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """How uv is run.

    Attributes:
        access: How the network is reached.
        cache: uv's cache folder; on a prefix's file system files are hard-linked.
        python: An interpreter that runs here.
        log: File that receives commands and output, or None.
        keep: Descriptors that uv inherits (the store's lock).
        run: Starts programs.
    """

    access: Access
    cache: Path
    python: Path
    log: Path | None = None
    keep: Sequence[int] = ()
    run: runner.Runner = runner.run

    def __call__(self, argv: Sequence[str], folder: Path) -> runner.Completed:
        """Run uv in a folder, with nothing of our environment.

        Raises:
            FetchError: An index answers, but so slowly that it would take for ever.
        """
        limits = {
            "UV_HTTP_TIMEOUT": f"{self.access.timeout_s}",
            "UV_HTTP_CONNECT_TIMEOUT": f"{min(_CONNECT_TIMEOUT_S, self.access.timeout_s)}",
            "UV_HTTP_RETRIES": f"{self.access.retries}",
        }
        try:
            return self.run(
                argv,
                env={**runner.base_environment(), **limits, **self.access.environment},
                cwd=folder,
                log=self.log,
                keep=self.keep,
                check=False,
                watch=None if "--offline" in argv else self._watch(),
            )
        except runner.Stalled as error:
            message = f"a package index: {error.message}"
            hint = "try again later, or use another mirror of that index"
            raise FetchError(message, hint=hint) from error

    def _watch(self) -> NetworkWatch:
        """Return what ends uv where an answer only trickles; silence uv ends by itself."""
        return NetworkWatch(self.access.timeout_s, silence=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What uv solved.

    Attributes:
        pylock: Text of a `pylock.toml`.
        yanked: Name, version and reason of every yanked release in it.
        undated: Names of files that were left out because the index gives no upload time.
        indexes: Address of the index of each release, by name and version; empty where there is
            no index but the default one.
    """

    pylock: str
    indexes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    yanked: tuple[tuple[str, str, str], ...] = ()
    undated: tuple[str, ...] = ()


def binary() -> Path:
    """Return the uv that came with the package `uv`.

    Raises:
        ToolMissing: It is not installed.
    """
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError) as error:
        message = "uv is not installed beside envbuild"
        raise ToolMissing(message, hint="install envbuild with its dependencies") from error


def compile_lock(question: Question, engine: Engine) -> Answer:
    """Solve a PyPI half.

    The engine's Python is asked nothing that enters the answer.

    Raises:
        NoSolution: It cannot be solved; `details` holds uv's reason.
        Undated: An index without upload times, under a cutoff.
        FetchError: An index is out of reach, or something is not in the cache while offline.
        ToolFailed: uv failed otherwise.
        ToolMissing: uv is not installed.
    """
    with scratch() as (folder, _):
        argv = [*_command("compile", folder, question.sources, engine)]
        argv += ["--python", f"{engine.python}", "--python-version", question.python]
        argv += ["--only-binary", ":all:", "--exclude-newer", instant(question.cutoff)]
        argv += options(question, folder)
        done = engine([*argv, "--format", "pylock.toml", *pins(question, folder)], folder)
        if done.status:
            problem = failure(done, question.sources)
            if isinstance(problem, NoSolution):
                index_pages.refuse(done.stderr, question.names, question.sources, engine.access)
            if files := undated_files(done.stderr):
                raise Undated(files, details=problem.details)
            raise problem
        several = any(source.name is not None for source in question.sources)
        indexes = _indexes(argv, folder, done.stdout, question, engine) if several else {}
    yanked = ((found[1], found[2], found[3] or "") for found in _YANKED.finditer(done.stderr))
    return Answer(
        pylock=done.stdout,
        yanked=tuple(yanked),
        undated=undated_files(done.stderr),
        indexes=indexes,
    )


def _indexes(
    argv: Sequence[str], folder: Path, pylock: str, question: Question, engine: Engine
) -> dict[tuple[str, str], str]:
    """Return which index each release came from: uv says it only beside a requirements file.

    The same question, with the answer as what to keep, needs no network; but what an index without
    hashes serves is not kept by uv, so it is asked online where the cache does not do.

    Raises:
        EnvbuildError: uv fails now.
        ToolFailed: uv answers otherwise than just before.
    """
    chosen = [(row["name"], row["version"]) for row in tomllib.loads(pylock).get("packages", ())]
    kept = "".join(f"{name}=={version}\n" for name, version in chosen)
    (folder / "kept.txt").write_text(kept, encoding="utf-8")
    words = ["--format", "requirements.txt", "--no-header", "--output-file", "kept.txt"]
    words += ["--no-annotate", "--emit-index-annotation"]
    offline = [] if engine.access.offline else ["--offline"]
    done = engine([*argv, *words, *offline], folder)
    if done.status and offline:
        done = engine([*argv, *words], folder)
    found = {
        (match["name"], match["version"]): match["url"] for match in _FROM.finditer(done.stdout)
    }
    if done.status:
        raise failure(done, question.sources)
    if found.keys() != set(chosen):
        message = "uv did not say which index each package comes from"
        raise ToolFailed(message, argv=done.argv, status=done.status)
    return found


def install(
    packages: Sequence[PipPackage],
    engine: Engine,
    *,
    sources: Sequence[Source],
    compile_bytecode: bool = False,
    again: bool = False,
) -> None:
    """Install a PyPI half into the prefix of the engine's Python, by hash, without requirements.

    The cache alone is tried first: with everything there, no index is asked. The Python's path has
    to be absolute and resolved, since scripts hold it; uv evaluates the markers of a universal
    lock with it.

    Args:
        packages: What to install; all of it, whatever else they require.
        engine: How uv is run, with the prefix's Python.
        sources: The indexes by the names that the packages give.
        compile_bytecode: Whether uv compiles what it installs.
        again: Whether they are there, and are removed and installed once more.

    Raises:
        FetchError: A wheel is out of reach, or has another hash.
        ToolFailed: uv failed otherwise. The prefix is then to be thrown away.
        ToolMissing: uv is not installed.
    """
    words = ["--python", f"{engine.python}", "--link-mode", "hardlink"]
    words += ["--compile-bytecode"] if compile_bytecode else []
    words += ["--reinstall"] if again else []
    _install(packages, words, engine, sources)


def make_environment(folder: Path, engine: Engine, *, beside_base: bool) -> None:
    """Make an empty virtual environment of the engine's Python; it works at any path.

    Args:
        folder: Where; what is there is removed.
        engine: How uv is run.
        beside_base: Whether what is installed in the base of that Python can be imported.

    Raises:
        ToolFailed: uv failed.
        ToolMissing: uv is not installed.
    """
    argv = [f"{binary()}", "venv", "--no-config", "--no-project", "--relocatable", "--clear"]
    argv += ["--system-site-packages"] if beside_base else []
    argv += ["--no-python-downloads", "--cache-dir", f"{engine.cache.absolute()}"]
    argv += ["--python", f"{engine.python}", "--color", "never", f"{folder}"]
    done = engine(argv, Path("/"))
    if done.status:
        raise failure(done, [Source(name=None, url=None)])


def prefetch(
    packages: Sequence[PipPackage],
    engine: Engine,
    *,
    folder: Path,
    target: Target,
    python_version: str,
    sources: Sequence[Source],
) -> None:
    """Bring the wheels of a PyPI half into uv's cache while their Python is not there yet.

    They are linked into a folder on the cache's disk, which the caller removes.

    Args:
        packages: What to fetch.
        engine: How uv is run; its Python is any that runs here.
        folder: Where they are linked; made if it is missing.
        target: The platform they are for.
        python_version: Full version of the Python they are for.
        sources: The indexes by the names that the packages give.

    Raises:
        FetchError: A wheel is out of reach, or has another hash.
        ToolFailed: uv failed otherwise.
        ToolMissing: uv is not installed.
    """
    words = ["--target", f"{folder}", "--python", f"{engine.python}"]
    words += ["--python-version", python_version, "--python-platform", platform_name(target)]
    _install(packages, [*words, "--link-mode", "hardlink"], engine, sources)


def default_index(engine: Engine) -> str:
    """Return the address of the index that uv asks where nobody named another.

    Raises:
        ToolFailed: uv does not say.
        ToolMissing: uv is not installed.
    """
    with scratch() as (folder, _):
        (folder / "nothing.txt").touch()
        argv = [*_command("compile", folder, [Source(name=None, url=None)], engine)]
        argv += ["nothing.txt", "--python", f"{engine.python}", "--no-header", "--emit-index-url"]
        done = engine(argv, folder)
    for line in done.stdout.splitlines():
        option, _, url = line.partition(" ")
        if option == "--index-url" and url:
            return url
    message = "uv did not say which index it asks"
    raise ToolFailed(message, argv=done.argv, status=done.status)


def unpacked(cache: Path) -> Path:
    """Return the folder of a cache in which uv puts each wheel, unpacked, in one step."""
    return cache / "archive-v0"


def unpacking(cache: Path) -> Iterator[Path]:
    """Yield the folders of a cache in which uv is unpacking a wheel now, or was when it ended."""
    return cache.glob(".tmp*")


def evict(names: Sequence[str], engine: Engine) -> None:
    """Remove distributions from the cache; what is linked elsewhere stays.

    Args:
        names: Normalized names.
        engine: How uv is run.

    Raises:
        ToolFailed: uv failed.
        ToolMissing: uv is not installed.
    """
    argv = [f"{binary()}", "cache", "clean", *names, "--no-config", "--color", "never"]
    argv += ["--cache-dir", f"{engine.cache.absolute()}"]
    done = engine(argv, Path("/"))
    if done.status:
        raise failure(done, [Source(name=None, url=None)])


def _install(
    packages: Sequence[PipPackage], words: Sequence[str], engine: Engine, sources: Sequence[Source]
) -> None:
    """Run uv once per index that packages come from; it sees that index alone."""
    by_name = {source.name: source for source in sources}
    ordered = sorted(packages, key=lambda package: (package.index or "", package.name))
    for index, group in groupby(ordered, key=lambda package: package.index):
        source = by_name.get(index, Source(name=index, url=None))
        if index is not None and source.url is None:
            message = f"the lock takes packages from index {index}, which the recipe does not have"
            raise FetchError(message, hint="lock the recipe again")
        with scratch() as (folder, _):
            _install_from(source, list(group), folder, words, engine)


def _install_from(
    source: Source,
    packages: Sequence[PipPackage],
    folder: Path,
    words: Sequence[str],
    engine: Engine,
) -> None:
    """Install packages from one index: from the cache, else online."""
    (folder / "requirements.txt").write_text(requirements_text(packages), encoding="utf-8")
    alone = [Source(name=None, url=source.url)]
    options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", *words]
    options += ["--requirements", "requirements.txt"]
    argv = [*_command("install", folder, alone, engine), *options]
    offline = [] if engine.access.offline else ["--offline"]
    done = engine([*argv, *offline], folder)
    if done.status and not engine.access.offline:
        done = engine(argv, folder)
    if done.status:
        asked = [Source(name=source.name, url=source.url)]
        problem = failure(done, asked)
        if isinstance(problem, NoSolution):
            names = [package.name for package in packages]
            index_pages.refuse(done.stderr, names, asked, engine.access)
            message = f"{source.label} lacks a wheel that is locked"
            if lacking := index_pages.lacking(done.stderr):
                message += f" ({', '.join(lacking)})"
            hint = "see whether that mirror is complete, or lock again"
            problem = FetchError(message, hint=hint, details=problem.details)
        raise problem


def _command(action: str, folder: Path, sources: Sequence[Source], engine: Engine) -> Iterator[str]:
    """Yield uv's command with what every call has; its configuration is written into a folder."""
    configuration = folder / "uv.toml"
    configuration.touch(0o600)
    configuration.write_text(index_tables(sources), encoding="utf-8")
    yield from (f"{binary()}", "pip", action, "--config-file", f"{configuration}")
    yield from ("--cache-dir", f"{engine.cache.absolute()}", "--no-python-downloads")
    yield from ("--no-progress", "--color", "never")
    if engine.access.offline:
        yield "--offline"
