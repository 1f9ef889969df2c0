"""The exception tree and its exit codes.

===== ============================================================ =================================
exit  class                                                        means
===== ============================================================ =================================
0     (none)                                                       done, or checked and fine
1     (findings), `Refused`                                        checked and the answer is no
2     click's usage errors, `UsageProblem`                         the command line is wrong
3     `InputError` (`RecipeError`, `LockError`, `FactsError`)      a file we were given is wrong
4     `NoSolution`                                                 the solvers say it cannot be done
5     `ToolError` (`ToolMissing`, `ToolFailed`, `ToolTimedOut`)    an outside program failed
6     `StoreError`                                                 the store is locked or damaged
7     `HostError`                                                  this machine cannot answer
8     `FetchError`                                                 network, wrong hash, short file
70    anything else                                                our fault
126   `NotExecutable`                                              `run`: the command cannot run
127   `CommandNotFound`                                            `run`: there is no such command
129   SIGHUP                                                       the terminal is gone
130   Ctrl-C                                                       interrupted
143   SIGTERM                                                      ended from outside
===== ============================================================ =================================
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar


class EnvbuildError(Exception):
    """Base of every error that has an answer for the user.

    Attributes:
        message: One line: what is wrong and where.
        hint: What to do about it, one line, or None.
        details: Further lines (a solver's reason, a log's tail), shown below the message.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, hint: str | None = None, details: str = "") -> None:
        """Carry what is known; do no work."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details


class Refused(EnvbuildError):
    """The answer is no: a stale lock, a failed smoke test, findings that are errors."""

    exit_code = 1


class UsageProblem(EnvbuildError):
    """The command line is wrong in a way that only shows after parsing (a malformed name)."""

    exit_code = 2


class InputError(EnvbuildError):
    """A file we were given is wrong.

    Attributes:
        source: The file's path as the user gave it.
        where: `line:column` (1-based) or a field such as `gpu.archs[1]`; empty if unknown.
        problems: Every problem of the file, each `source:line:column: field: what`.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        source: str = "",
        where: str = "",
        problems: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        """Keep file, place and the whole list of problems."""
        super().__init__(message, hint=hint, details="\n".join(problems))
        self.source = source
        self.where = where
        self.problems = tuple(problems)


class RecipeError(InputError):
    """A recipe does not say what a recipe may say, or there is none of that name."""


class LockError(InputError):
    """A lock file is missing, damaged or not one of ours."""


class FactsError(InputError):
    """A table of facts is wrong, or contradicts another."""


class NoSolution(EnvbuildError):
    """The solvers say that it cannot be done; `details` holds their reason."""

    exit_code = 4


class ToolError(EnvbuildError):
    """An outside program or engine could not do its work.

    Attributes:
        argv: The command, for a person to repeat.
        status: Its exit status (negative: a signal), None if it never ran.
        log: Where its whole output lies, or None.
    """

    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        argv: Sequence[str] = (),
        status: int | None = None,
        log: Path | None = None,
        hint: str | None = None,
        details: str = "",
    ) -> None:
        """Keep the command, its status and where its output lies."""
        super().__init__(message, hint=hint, details=details)
        self.argv = tuple(argv)
        self.status = status
        self.log = log

    @property
    def last_line(self) -> str:
        """The last line that the program printed, empty for none."""
        lines = [line.strip() for line in self.details.splitlines() if not line.startswith("$ ")]
        return next((line for line in reversed(lines) if line), "")


class ToolMissing(ToolError):
    """The program is not installed."""


class ToolFailed(ToolError):
    """The program ended with a failure."""


class ToolTimedOut(ToolError):
    """The program did not end in its time and was ended."""


class StoreError(EnvbuildError):
    """The store is locked, damaged, or lacks room or quota."""

    exit_code = 6


class HostError(EnvbuildError):
    """This machine cannot answer: no driver, no systemd, no permission."""

    exit_code = 7


class FetchError(EnvbuildError):
    """The network: a channel or index out of reach, a wrong hash, a short file."""

    exit_code = 8


class NotExecutable(EnvbuildError):
    """The command that was to be run is there and cannot be executed."""

    exit_code = 126


class CommandNotFound(EnvbuildError):
    """The command that was to be run does not exist."""

    exit_code = 127
