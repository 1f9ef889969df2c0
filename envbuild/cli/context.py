"""`Here`: where and how this command runs, from its options, the environment and the machine.

Everything is worked out when it is asked for, so that a command pays only for what it uses.
"""

import os
import stat
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from envbuild.access import Access
    from envbuild.cli.settings import Settings
    from envbuild.compat.model import Facts
    from envbuild.store.layout import Store
    from envbuild.target import Platform

MOST_SECONDS = 30 * 86400.0
_GROUPS = stat.S_ISGID | stat.S_IWGRP


class Here:
    """Where and how this command runs.

    Attributes:
        environment: The environment of this process.
        store_option: `--store`, or None.
        recipes_option: `--recipes`, or None.
        locks_option: `--locks`, or None.
        verbosity: How often `-v` was given.
        quiet: Whether `-q` was given; it wins over `-v`.
        color_option: `--color`, or empty.
        color: `auto`, `always` or `never`, from the option or what is set; empty where neither is.
        config_option: `--config-file`, or None.
        no_config_option: Whether `--no-config` was given.
        no_progress_option: Whether `--no-progress` was given.
        offline_option: Whether `--offline` was given.
        locked_option: Whether `--locked` was given.
        frozen_option: Whether `--frozen` was given.
        allow_option: Codes of findings that `--allow` lets through.
        lock_timeout_option: `--lock-timeout` in seconds, or None.
        debug: Whether an internal error shows its traceback.
        as_json: Whether results, errors included, are printed as JSON.
        failure_code: Exit code of every failure of ours, None for each error's own.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Take the environment of this process, or another; options come later.

        Args:
            environment: Variables to read instead of this process's.
        """
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        self.store_option: str | None = None
        self.recipes_option: str | None = None
        self.locks_option: str | None = None
        self.verbosity = 0
        self.quiet = False
        self.color_option = ""
        self.color = ""
        self.config_option: str | None = None
        self.no_config_option = False
        self.no_progress_option = False
        self.offline_option = False
        self.locked_option = False
        self.frozen_option = False
        self.allow_option: tuple[str, ...] = ()
        self.lock_timeout_option: float | None = None
        self.debug = False
        self.as_json = False
        self.failure_code: int | None = None

    @property
    def home(self) -> "Path":
        """The user's home directory: `HOME`, else what the user database says."""
        import pwd
        from pathlib import Path

        told = self.environment.get("HOME")
        if told:
            return Path(told)
        try:
            return Path(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:
            return Path("/nonexistent")

    @cached_property
    def settings(self) -> "Settings":
        """What variables and configuration files set."""
        from envbuild.cli.settings import Settings

        return Settings(
            environment=self.environment,
            home=self.home,
            file=self.config_option,
            without_files=self.no_config_option,
        )

    @property
    def told(self) -> Mapping[str, str]:
        """The variables, with what configuration files say where no variable does."""
        return self.settings.told

    @property
    def store(self) -> "Store":
        """The store: `--store`, what is set for it, else one for root and one per user.

        Raises:
            StoreError: Only a later envbuild knows its format.
        """
        from pathlib import Path

        told = self.store_option or self.told.get("ENVBUILD_STORE")
        cache = self.told.get("ENVBUILD_CACHE") or None
        if told:
            return _known_store(Path(told), cache)
        if os.geteuid() == 0:
            return _known_store(self.system_store.root, cache)
        data = self.environment.get("XDG_DATA_HOME") or ""
        base = Path(data) if data.startswith("/") else self.home / ".local/share"
        return _known_store(base / "envbuild", cache)

    @property
    def system_store(self) -> "Store":
        """The store of root, from which others run.

        Raises:
            StoreError: Only a later envbuild knows its format.
        """
        from pathlib import Path

        return _known_store(Path(self.told.get("ENVBUILD_SYSTEM_STORE") or "/var/lib/envbuild"))

    @property
    def stores(self) -> "tuple[Store, ...]":
        """Where an environment is looked for: the user's own store, then the system's.

        One that `--store` or the variable names stands alone.
        """
        if self.store_option or self.environment.get("ENVBUILD_STORE"):
            return (self.store,)
        from envbuild.errors import StoreError

        try:
            return tuple(dict.fromkeys((self.store, self.system_store)))
        except StoreError:  # only the system's is newer: one's own is used all the same
            return (self.store,)

    @property
    def recipe_folders(self) -> "tuple[Path, ...]":
        """Where recipes are looked up, first folder first."""
        return self._folders(self.recipes_option, "ENVBUILD_RECIPES", "recipes")

    @property
    def lock_folders(self) -> "tuple[Path, ...]":
        """Where locks are looked up, first folder first."""
        return self._folders(self.locks_option, "ENVBUILD_LOCKFILES", "lockfiles")

    @property
    def lock_output(self) -> "Path":
        """The folder that new locks are written to: never the one in the package."""
        from pathlib import Path

        told = self.locks_option or self.environment.get("ENVBUILD_LOCKFILES") or "lockfiles"
        return Path(told.split(os.pathsep)[0]).expanduser()

    def lock_folder(self, name: str, *, recipe: "Path | None" = None) -> "Path | None":
        """Return the folder of a recipe's lock (`lockfiles/NAME`), or None if there is none.

        Args:
            name: The recipe's name.
            recipe: The recipe's file, absolute: a lock that ships in the package is not the lock
                of a recipe that does not.
        """
        own = recipe is not None and recipe.parent != self.recipe_folders[-1].resolve()
        shipped = self.lock_folders[-1].resolve()
        for folder in self.lock_folders:
            if (folder / name / "conda-lock.yml").is_file():
                return None if own and folder.resolve() == shipped else folder / name
        return None

    def _folders(self, option: str | None, variable: str, name: str) -> "tuple[Path, ...]":
        from pathlib import Path

        package = Path(__file__).parent.parent / name
        told = [option, *self.environment.get(variable, "").split(os.pathsep)]
        files = self.settings.configuration.paths(name)
        return (
            *(Path(part).expanduser() for part in told if part),
            Path(name),
            *map(Path, files),
            package,
        )

    @property
    def access(self) -> "Access":
        """How channels and indexes are reached."""
        from envbuild.access import Access
        from envbuild.config import foreign
        from envbuild.config.settings import index_addresses, with_files
        from envbuild.tools import index_settings

        others = foreign.rows(self.environment, self.home, with_files=self.settings.files_read)
        told = with_files(self.told, others)
        timeout_s, retries = index_settings.http_limits(told)
        return Access(
            channel_mirrors=index_settings.channel_mirrors(told),
            default_index=told.get("ENVBUILD_DEFAULT_INDEX") or None,
            index_logins=index_addresses(told),
            offline=self.offline,
            environment=index_settings.network_environment(told),
            timeout_s=timeout_s,
            retries=retries,
        )

    @property
    def offline(self) -> bool:
        """Whether only caches may be used."""
        return self.offline_option or bool(self.flag("OFFLINE"))

    @property
    def locked(self) -> bool:
        """Whether a lock that does not answer its recipe is an error."""
        return self._one_of_locked_and_frozen()[0]

    @property
    def frozen(self) -> bool:
        """Whether a lock is taken as it is."""
        return self._one_of_locked_and_frozen()[1]

    def _one_of_locked_and_frozen(self) -> tuple[bool, bool]:
        locked, frozen = self.locked_option, self.frozen_option
        if not locked and not frozen:
            locked, frozen = bool(self.flag("LOCKED")), bool(self.flag("FROZEN"))
        if locked and frozen:
            from envbuild.errors import UsageProblem

            message = "--locked and --frozen cannot be used together"
            raise UsageProblem(message, hint="--locked looks whether the lock answers the recipe")
        return locked, frozen

    @cached_property
    def facts(self) -> "Facts":
        """The facts that ship, with those of the folder that `ENVBUILD_FACTS` names.

        Raises:
            FactsError: A table is wrong.
        """
        return self.facts_of()

    def facts_of(self, *tables: str) -> "Facts":
        """Return the facts of some tables, by the names of their files; of all without a name.

        Raises:
            FactsError: A table is wrong.
        """
        from pathlib import Path

        from envbuild.compat.tables import load

        told = self.told.get("ENVBUILD_FACTS")
        return load(Path(told).expanduser() if told else None, only=tables)

    @property
    def python(self) -> str | None:
        """`ENVBUILD_PYTHON`, the interpreter for recipes on the host's Python."""
        return self.told.get("ENVBUILD_PYTHON") or None

    @property
    def compile_default(self) -> bool:
        """Whether `create` compiles bytecode when no option says.

        Root does, and who shares a store: others run it and cannot write there.
        """
        told = self.flag("COMPILE")
        return os.geteuid() == 0 or _is_shared(self.store.root) if told is None else told

    @property
    def lock_timeout_s(self) -> float | None:
        """How long to wait for a lock: `--lock-timeout`, `ENVBUILD_LOCK_TIMEOUT`, else None.

        Raises:
            UsageProblem: The variable is not a number of seconds.
        """
        if self.lock_timeout_option is not None:
            return self.lock_timeout_option
        return self.settings.lock_timeout_s

    def flag(self, name: str) -> bool | None:
        """Return what `ENVBUILD_name` says, or None if it is not set.

        Raises:
            UsageProblem: It is neither yes nor no.
        """
        return self.settings.switch(name)

    def now(self) -> "datetime":
        """Return this instant, in UTC."""
        from datetime import UTC, datetime

        return datetime.now(UTC)

    @property
    def platform(self) -> "Platform":
        """The platform of this machine.

        Raises:
            HostError: envbuild knows no platform for its processor.
        """
        from envbuild.errors import HostError
        from envbuild.target import MACHINES

        machine = os.uname().machine
        for platform, name in MACHINES.items():
            if name == machine:
                return platform
        message = f"this machine is a {machine}; environments exist for {', '.join(MACHINES)}"
        raise HostError(message)

    @property
    def user(self) -> str:
        """Who runs this: the login, and who became it by sudo."""
        import pwd

        try:
            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            name = str(os.getuid())
        sudo = self.environment.get("SUDO_USER")
        return f"{name} ({sudo})" if sudo and sudo != name else name

    @property
    def host(self) -> str:
        """The name of this machine."""
        return os.uname().nodename

    def forced_color(self) -> bool | None:
        """Return whether colour is wanted whatever the stream is; None: only on a terminal."""
        if self.color in {"always", "never"}:
            return self.color == "always"
        if self.environment.get("NO_COLOR"):
            return False
        if self.environment.get("FORCE_COLOR", "0") != "0":
            return True
        return False if self.environment.get("TERM") == "dumb" else None


def _known_store(root: "Path", cache: str | None = None) -> "Store":
    """Return the store in a folder, its caches where they are told to be.

    Raises:
        StoreError: Only a later envbuild knows its format.
    """
    from pathlib import Path

    from envbuild.store import formats
    from envbuild.store.layout import Store

    root = root.expanduser().absolute()
    folder = None if cache is None else Path(cache).expanduser().absolute()
    if folder is None and _is_shared(root):
        folder = root / "cache" / str(os.geteuid())
    store = Store(root=root, cache_folder=folder)
    formats.check(store)
    return store


def _is_shared(root: "Path") -> bool:
    """Tell whether a store is a group's: then each user has caches of his own there."""
    try:
        mode = os.stat(root).st_mode  # noqa: PTH116 - start-up time
    except OSError:
        return False
    return mode & _GROUPS == _GROUPS
