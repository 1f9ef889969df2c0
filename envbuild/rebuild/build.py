"""One build of a wheel: its backend's hooks (PEP 517), each in the sandbox, with a log to watch."""

import re
import shlex
import signal
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envbuild.errors import InputError, ToolFailed
from envbuild.progress import Progress
from envbuild.rebuild.variables import Layout
from envbuild.tools import sandbox
from envbuild.tools.run import Runner, run

_TAIL_BYTES = 6000
_KILLED = re.compile(
    r"(?m)^.*(Killed signal terminated program|[Kk]illed \(program|signal 9\b|: Killed\b|^Killed$"
    r"|exit(?:ed with)? (?:status|code):? 137\b|died with <Signals.SIGKILL)"
)
_NINJA = re.compile(r"\[(\d+)/(\d+)\]")
_SHELL_KILLED = 137


@dataclass(frozen=True, kw_only=True, slots=True)
class Backend:
    """What builds the sources, as their pyproject.toml says (PEP 518).

    Attributes:
        name: Such as `setuptools.build_meta:__legacy__`.
        path: Folders of the sources that it lies in.
        requires: What it requires, as PEP 508 lines.
    """

    name: str
    path: tuple[str, ...]
    requires: tuple[str, ...]


class OutOfMemory(ToolFailed):
    """A build was killed for want of memory."""


def backend(sources: Path) -> Backend:
    """Return what builds the sources.

    Raises:
        InputError: They are no Python project, or their pyproject.toml is wrong.
    """
    path = sources / "pyproject.toml"
    table: Any = {}
    if path.is_file():
        table = _read(path).get("build-system", {})
    elif not (sources / "setup.py").is_file():
        message = f"{sources.name}: neither pyproject.toml nor setup.py is in the sources"
        raise InputError(message, source=f"{sources}")
    requires = table.get("requires", ["setuptools>=40.8.0"]) if isinstance(table, dict) else None
    if not isinstance(requires, list) or not all(isinstance(one, str) for one in requires):
        message = f"{path.name}: build-system.requires is no list of requirements"
        raise InputError(message, source=f"{path}", where="build-system.requires")
    return Backend(
        name=str(table.get("build-backend", "setuptools.build_meta:__legacy__")),
        path=tuple(map(str, table.get("backend-path", ()))),
        requires=tuple(requires),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        message = f"{path.parent.name}/{path.name}: {error}"
        raise InputError(message, source=f"{path}") from error


@dataclass(kw_only=True)
class Ninja:
    """Tells how far ninja is, as it says so in a log (`[12/345]`)."""

    log: Path
    what: str
    progress: Progress
    interval_s: float = 1.0
    _said: str = ""

    def look(self, pid: int) -> str | None:  # noqa: ARG002
        """Look at the log's end; never ends the build."""
        found = _NINJA.findall(tail(self.log, 400))
        if found and (said := f"{self.what}: {found[-1][0]} of {found[-1][1]}") != self._said:
            self._said = said
            self.progress.step(said)
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Building:
    """How the hooks of one build are run.

    Attributes:
        folder: The build's folder.
        seen: Where the build sees it: elsewhere in a sandbox.
        sources: Folder of the sources within it.
        backend: What builds them.
        log: File that receives what it prints.
        what: What is built, for progress.
        progress: Is told how far it is.
        keep: Descriptors that children inherit.
        run: Starts programs.
    """

    folder: Layout
    seen: Layout
    sources: Path
    backend: Backend
    log: Path
    what: str
    progress: Progress
    keep: Sequence[int] = ()
    run: Runner = run

    @property
    def sandboxed(self) -> bool:
        """Whether the build has no network, and its folder at a path that is always the same."""
        return self.seen != self.folder

    def requires(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return what the backend requires besides, after looking at the sources.

        Raises:
            ToolFailed: It failed.
            InputError: There is no such backend.
        """
        return tuple(self._hook("get_requires_for_build_wheel", environment))

    def wheel(self, environment: Mapping[str, str]) -> Path:
        """Build the wheel and return its file.

        Raises:
            OutOfMemory: It was killed for want of memory.
            ToolFailed: It failed.
            InputError: There is no such backend.
        """
        name = self._hook("build_wheel", environment, str(self.folder.output))
        return self.folder.output / Path(str(name)).name

    def command(self, argv: Sequence[str], folder: Path, *, log: Path | None = None) -> list[str]:
        """Return the command line that runs a command where the build runs.

        Args:
            argv: The command, as the build sees it.
            folder: Its working directory, as the build sees it.
            log: File that its output is added to, or None.
        """
        at = {self.folder.root: self.seen.root} if self.sandboxed else {}
        return sandbox.argv(argv, at=at, folder=folder, log=log)

    def write_again(self, environment: Mapping[str, str]) -> Path:
        """Write a script that runs a command, or a shell, just where and as the build runs."""
        words = [f"{name}={value}" for name, value in sorted(environment.items())]
        inside = self.command(["/bin/sh", "-c", '"$@"', "sh"], self._seen(self.sources))
        script = self.folder.root / "again.sh"
        command = shlex.join(["env", "-i", *words, *inside])
        text = f'[ $# -gt 0 ] || set -- /bin/sh\nexec {command} "$@"\n'
        script.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        script.chmod(0o755)
        return script

    def _hook(self, name: str, environment: Mapping[str, str], *arguments: str) -> Any:  # noqa: ANN401
        from pyproject_hooks import (
            BackendUnavailable,
            BuildBackendHookCaller,
            UnsupportedOperation,
        )

        def start(
            cmd: Sequence[str],
            cwd: str | None = None,
            extra_environ: Mapping[str, str] | None = None,
        ) -> None:
            more = {key: self._text(value) for key, value in (extra_environ or {}).items()}
            argv = [self._text(word) for word in cmd]
            self._start(argv, {**environment, **more}, self._seen(Path(cwd or self.sources)))

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the backend's, which pyproject_hooks hands on
                caller = BuildBackendHookCaller(
                    f"{self.sources}",
                    self.backend.name,
                    self.backend.path,
                    runner=start,
                    python_executable=f"{self.seen.python}",
                )
                return getattr(caller, name)(*arguments)
        except (BackendUnavailable, UnsupportedOperation, ValueError) as error:
            message = f"{self.what}: its build backend {self.backend.name} cannot be used: {error}"
            raise InputError(message, source=f"{self.sources}/pyproject.toml") from error

    def _start(self, argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        before = self.log.stat().st_size if self.log.exists() else 0
        script = self.write_again(environment)
        try:
            self.run(
                self.command(argv, folder, log=self.log),
                env=environment,
                keep=self.keep,
                watch=Ninja(log=self.log, what=self.what, progress=self.progress),
            )
        except ToolFailed as error:
            printed = tail(self.log, min(_TAIL_BYTES, self.log.stat().st_size - before))
            killed = error.status in {-signal.SIGKILL, _SHELL_KILLED}
            if not (printed.strip() or killed):
                raise
            details = f"{printed.strip()}\n$ {script} {shlex.join(argv)}"
            hint = f"the whole log is {self.log}; {script} runs a command where the build runs"
            kind, message = ToolFailed, f"{self.what}: its build failed"
            if killed or _KILLED.search(printed):
                kind, message = OutOfMemory, f"{self.what}: its build was killed: too little memory"
            raise kind(
                message,
                argv=argv,
                status=error.status,
                log=self.log,
                hint=hint,
                details=details,
            ) from error

    def _seen(self, path: Path) -> Path:
        return Path(self._text(f"{path}"))

    def _text(self, text: str) -> str:
        return text.replace(f"{self.folder.root}", f"{self.seen.root}")


def tail(path: Path, count: int) -> str:
    """Return the last bytes of a file as text."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - count))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
