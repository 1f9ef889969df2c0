"""What is set: variables first, then the user's file, then the system's."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from envbuild.cli.context import MOST_SECONDS
from envbuild.config import settings
from envbuild.config.settings import Configuration
from envbuild.errors import UsageProblem

_YES = {"1", "true", "yes", "on"}
_NO = {"", "0", "false", "no", "off"}
_COLORS = {"auto", "always", "never"}


class Settings:
    """What is set for one command, whatever its options say."""

    def __init__(
        self, *, environment: Mapping[str, str], home: Path, file: str | None, without_files: bool
    ) -> None:
        """Keep where to look; nothing is read yet.

        Args:
            environment: The variables.
            home: The user's home directory.
            file: `--config-file`, or None.
            without_files: Whether `--no-config` was given.
        """
        self._environment = environment
        self._home = home
        self._file = file
        self._without_files = without_files

    @property
    def files_read(self) -> bool:
        """Whether configuration files are read at all, ours and those of other tools.

        Raises:
            UsageProblem: `--no-config` and `--config-file` were both given.
        """
        if self._without_files and self._file:
            message = "--no-config and --config-file cannot be used together"
            raise UsageProblem(message, hint="--config-file FILE reads that file alone")
        if self._file:
            return True
        return not (self._without_files or _switch("NO_CONFIG", self._environment))

    @property
    def files(self) -> list[Path]:
        """Our configuration files that are read, the one that counts most first."""
        if not self.files_read:
            return []
        told = {settings.CONFIG_FILE: self._file} if self._file else {}
        return settings.own_files({**self._environment, **told}, self._home)

    @cached_property
    def configuration(self) -> Configuration:
        """What our configuration files say.

        Raises:
            InputError: One of them is wrong.
        """
        return settings.load(self.files, home=self._home)

    @cached_property
    def told(self) -> Mapping[str, str]:
        """The variables, with what files say where no variable does."""
        rows = self.configuration.rows
        return settings.with_files(self._environment, rows) if rows else self._environment

    def switch(self, name: str) -> bool | None:
        """Return what is set for `ENVBUILD_name`, or None if it is not set.

        Raises:
            UsageProblem: It is neither yes nor no.
        """
        return _switch(name, self.told)

    @property
    def lock_timeout_s(self) -> float | None:
        """How long to wait for a lock, or None where it is not set.

        Raises:
            UsageProblem: It is not a number of seconds.
        """
        told = self.told.get("ENVBUILD_LOCK_TIMEOUT")
        if not told:
            return None
        try:
            seconds = float(told)
        except ValueError:
            seconds = -1.0
        if 0 <= seconds <= MOST_SECONDS:
            return seconds
        message = f"ENVBUILD_LOCK_TIMEOUT is {told!r}, which is no number of seconds"
        raise UsageProblem(message, hint="set it to seconds: 0 does not wait")

    @property
    def color(self) -> str:
        """What is set for colour, or empty.

        Raises:
            UsageProblem: It is something else than `auto`, `always` and `never`.
        """
        told = self.told.get("ENVBUILD_COLOR", "")
        if told and told not in _COLORS:
            message = f"ENVBUILD_COLOR is {told!r}"
            raise UsageProblem(message, hint="set it to auto, always or never")
        return told

    @property
    def keep(self) -> int | None:
        """How many of the newest generations `gc` leaves, where it is set.

        Raises:
            UsageProblem: It is no whole number.
        """
        told = self.told.get("ENVBUILD_KEEP")
        if not told:
            return None
        if told.isascii() and told.isdigit():
            return int(told)
        message = f"ENVBUILD_KEEP is {told!r}, not a whole number from 0 on"
        raise UsageProblem(message, hint="set it to 3, or not at all")


def _switch(name: str, environment: Mapping[str, str]) -> bool | None:
    """Return what a variable says, or None if it is not set.

    Raises:
        UsageProblem: It is neither yes nor no.
    """
    told = environment.get(f"ENVBUILD_{name}")
    if told is None:
        return None
    if told.lower() in _YES | _NO:
        return told.lower() in _YES
    message = f"ENVBUILD_{name} is {told!r}, which is neither yes nor no"
    raise UsageProblem(message, hint="set it to 1 or 0")
