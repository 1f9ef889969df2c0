"""The sources of a rebuild: fetched, checked and recorded before anything is built.

::

    SOURCES/sdist/NAME-VERSION/FILENAME   with record.json beside it: what was fetched, from where
    SOURCES/git/COMMIT/                   a checkout with its submodules, whole or not at all

An sdist is recorded with its hash when it is fetched first; another hash later is an error.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import Version

from envbuild.errors import FetchError, InputError, ToolFailed, ToolMissing
from envbuild.progress import Progress
from envbuild.rebuild.crates import Crates
from envbuild.rebuild.unpack import unpack
from envbuild.tools import addresses, index_files
from envbuild.tools.files import make_folder, remove_tree, sha256_file, write_atomic
from envbuild.tools.http import Session
from envbuild.tools.run import Completed, Runner, base_environment, run
from envbuild.tools.scratch import scratch
from envbuild.wheel.model import Archive, GitCommit, Sdist, Source

_RECORD = "record.json"
_SILENCE_S = 60
"""After so long without a byte git gives up; of itself it never does."""


_OF_ANOTHER_BUILD = shutil.ignore_patterns("CMakeCache.txt", "CMakeFiles")
"""What CMake would go on with, and another compiler and prefix stand in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """Sources that are here.

    Attributes:
        uri: Where they come from, without a login.
        kind: `sha256` of an archive or a folder, or `gitCommit`.
        digest: That digest.
        path: The archive, or the folder.
        moment: When a commit was made, in seconds since 1970; None for an archive, whose files say.
        submodules: The submodules' commits by their paths, of a git checkout.
        crates: What Rust sources are built with, None where they are none or bring it along.
    """

    uri: str
    kind: str
    digest: str
    path: Path
    moment: int | None = None
    submodules: tuple[tuple[str, str], ...] = ()
    crates: Crates | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetching:
    """How sources are reached.

    Attributes:
        cache: The folder of fetched sources.
        session: What fetches.
        indexes: Address of each index by name; None is the default one.
        offline: Whether only what is here may be used.
        own: Variables that git and cargo need to log in (HOME, SSH_AUTH_SOCK, proxies).
        progress: Is told what arrives.
        run: Starts git and cargo.
    """

    cache: Path
    session: Session
    indexes: Mapping[str | None, str]
    offline: bool
    own: Mapping[str, str]
    progress: Progress
    run: Runner = run


def fetch(source: Source, how: Fetching) -> Fetched:
    """Fetch sources, unless they are here already, and check them.

    Raises:
        FetchError: They cannot be had, or are not what they were or should be.
        InputError: There is no such archive.
        ToolMissing: There is no git.
        ToolFailed: git failed.
    """
    if isinstance(source, Sdist):
        return _sdist(source, how)
    if isinstance(source, GitCommit):
        return _git(source, how)
    return _archive(source)


def place(fetched: Fetched, folder: Path) -> Path:
    """Put sources into a new folder and return the folder that is built from.

    What CMake noted of a build in a folder stays behind.

    Raises:
        InputError: The archive is none, is hostile, or has no folder of a project in it.
    """
    if fetched.path.is_dir():
        shutil.copytree(fetched.path, folder, symlinks=True, ignore=_OF_ANOTHER_BUILD)
        return folder
    unpack(fetched.path, folder)
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _sdist(source: Sdist, how: Fetching) -> Fetched:
    folder = how.cache / "sdist" / f"{source.name}-{source.version}"
    record = _recorded(folder / _RECORD)
    if record is not None:
        path = folder / record["filename"]
        if path.is_file() and sha256_file(path) == record["sha256"]:
            return Fetched(uri=record["uri"], kind="sha256", digest=record["sha256"], path=path)
    if how.offline:
        message = f"{source}: not in the cache"
        raise FetchError(message, hint="run it once without --offline")
    listed = index_files.listed(how.session, how.indexes[source.index], source.name)
    file = _chosen(source, listed)
    if record is not None and record["sha256"] != file.sha256:
        message = f"{file.filename}: the index has another file than was recorded of {source}"
        hint = f"see which of both is right; to take the new one, remove {folder}"
        details = f"recorded sha256 {record['sha256']}\nnow sha256      {file.sha256}"
        raise FetchError(message, hint=hint, details=details)
    make_folder(folder)
    path = folder / Path(file.filename).name
    how.session.download(file.url, path, sha256=file.sha256, size=file.size, progress=how.progress)
    digest = file.sha256 or ""
    uri = addresses.without_login(file.url)
    rows = {"filename": path.name, "sha256": digest, "uri": uri}
    write_atomic(folder / _RECORD, json.dumps(rows, indent=1) + "\n")
    return Fetched(uri=uri, kind="sha256", digest=digest, path=path)


def _recorded(path: Path) -> dict[str, Any] | None:
    try:
        rows = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    known = isinstance(rows, dict) and {"filename", "sha256", "uri"} <= rows.keys()
    return rows if known else None


def _chosen(source: Sdist, listed: Iterable[index_files.IndexFile]) -> index_files.IndexFile:
    """Return the sdist of a version; `.tar.gz` where there are several."""
    found = [file for file in listed if _is_sdist(file.filename, source)]
    if not found:
        message = f"the index has no sdist of {source.name} {source.version}"
        hint = f"name `git` with a commit, or an `archive`, under build.packages.{source.name}"
        raise FetchError(message, hint=hint)
    best = max(found, key=lambda file: file.filename.endswith(".tar.gz"))
    if best.sha256 is None:
        message = f"the index gives no sha256 for {best.filename}"
        raise FetchError(message, hint="use an index that gives hashes, or name an `archive`")
    return best


def _is_sdist(filename: str, source: Sdist) -> bool:
    try:
        name, version = parse_sdist_filename(filename)
    except InvalidSdistFilename:
        return False
    return name == canonicalize_name(source.name) and version == Version(source.version)


def _archive(source: Archive) -> Fetched:
    path = Path(source.path)
    if path.is_dir():
        digest = _tree_digest(path)
    elif path.is_file():
        digest = sha256_file(path)
    else:
        message = f"{path}: there is no such source archive or folder"
        raise InputError(message, source=f"{path}", hint="see build.packages of the recipe")
    if source.sha256 is not None and digest != source.sha256:
        message = f"{path}: its sha256 is not the one that the recipe names"
        details = f"recipe {source.sha256}\nfound  {digest}"
        raise FetchError(message, hint="see which of both is right", details=details)
    return Fetched(uri=path.as_uri(), kind="sha256", digest=digest, path=path)


def _tree_digest(folder: Path) -> str:
    """Return a digest over paths, modes and contents of a folder's files."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            row = f"link {path.readlink()}"
        elif path.is_file():
            row = f"{'x' if os.access(path, os.X_OK) else '-'} {sha256_file(path)}"
        else:
            continue
        digest.update(f"{path.relative_to(folder)}\0{row}\n".encode())
    return digest.hexdigest()


def _git(source: GitCommit, how: Fetching) -> Fetched:
    if shutil.which("git", path=base_environment()["PATH"]) is None:
        message = f"git is not here, and {source.url} is a git repository"
        raise ToolMissing(message, hint="install git")
    folder = how.cache / "git" / source.commit
    git = _Git(source, how)
    if not folder.is_dir() or not git.is_clean(folder):
        if how.offline and urlsplit(source.url).scheme != "file":
            message = f"{source}: not in the cache"
            raise FetchError(message, hint="run it once without --offline")
        remove_tree(folder)
        make_folder(folder.parent)
        how.progress.step(f"fetching {source.url} at {source.tag or source.commit[:12]}")
        with scratch(folder.parent) as (new, _):
            git.check_out(new / "tree")
            (new / "tree").rename(folder)
    return Fetched(
        uri=f"git+{source.url}@{source.commit}",
        kind="gitCommit",
        digest=source.commit,
        path=folder,
        moment=git.moment(folder),
        submodules=git.submodules(folder) if source.submodules else (),
    )


class _Git:
    """git, for one repository."""

    def __init__(self, source: GitCommit, how: Fetching) -> None:
        self._source = source
        self._run = how.run
        local = urlsplit(source.url).scheme == "file"
        self._options = ["-c", f"protocol.file.allow={'always' if local else 'never'}"]
        self._options += ["-c", "advice.detachedHead=false", "-c", "core.autocrlf=false"]
        self._options += ["-c", "http.lowSpeedLimit=1", "-c", f"http.lowSpeedTime={_SILENCE_S}"]
        self._environment = {
            **base_environment(),
            "GIT_TERMINAL_PROMPT": "0",
            **how.own,
        }

    def check_out(self, tree: Path) -> None:
        """Fetch the commit, with its submodules, into a new folder.

        Raises:
            FetchError: The repository cannot be reached, or has no such tag or commit, or the tag
                points to another commit.
            ToolFailed: git failed.
        """
        source = self._source
        self._git(["init", "--quiet", f"{tree}"])
        self._git(["remote", "add", "origin", source.url], tree)
        self._reach(["ls-remote", "--quiet", "origin", "HEAD"], tree)
        if source.tag is not None:
            self._fetch(tree, f"refs/tags/{source.tag}:refs/tags/{source.tag}")
            tag = f"refs/tags/{source.tag}^{{commit}}"
            found = self._git(["rev-parse", "--quiet", "--verify", tag], tree, check=False)
            if found.stdout.strip() != source.commit:
                message = f"{source.url}: tag {source.tag} is {found.stdout.strip()}, not the "
                message += f"commit of the recipe, {source.commit}"
                if found.status:
                    message = f"{source.url}: there is no tag {source.tag}"
                raise FetchError(message, hint="see whether the tag was moved")
        else:
            self._fetch(tree, source.commit)
        checkout = ["checkout", "--quiet", "--force", source.commit]
        if self._git(checkout, tree, check=False).status:
            message = f"{source.url}: there is no commit {source.commit}"
            raise FetchError(message, hint="see which commit it is, and name it in the recipe")
        if source.submodules:
            update = ["submodule", "update", "--init", "--recursive", "--depth", "1"]
            done = self._git([*update, "--jobs", "4"], tree, check=False)
            if done.status:  # a server that gives no single commits
                self._reach(update[:-2], tree)

    def _reach(self, words: Sequence[str], tree: Path) -> None:
        """Run git on a repository that may be out of reach.

        Raises:
            FetchError: It is.
        """
        try:
            self._git(words, tree)
        except ToolFailed as error:
            said = error.last_line.removeprefix("fatal: ")
            message = f"{self._source.url}: git cannot fetch it: {said}"
            hint = (
                "see whether git reaches it with your own settings; or name an `archive` of it "
                "in place of `git` under build.packages"
            )
            raise FetchError(message, hint=hint, details=error.details) from error

    def _fetch(self, tree: Path, what: str) -> None:
        done = self._git(["fetch", "--quiet", "--depth", "1", "origin", what], tree, check=False)
        if done.status:  # a server that gives no single commits
            self._reach(["fetch", "--quiet", "--tags", "origin", "+refs/heads/*:refs/o/*"], tree)

    def is_clean(self, tree: Path) -> bool:
        """Say whether a checkout is of the commit, and nothing in it was changed."""
        head = self._git(["rev-parse", "HEAD"], tree, check=False)
        status = self._git(["status", "--porcelain"], tree, check=False)
        return head.stdout.strip() == self._source.commit and status.stdout == ""

    def moment(self, tree: Path) -> int:
        """Return when the commit was made, in seconds since 1970."""
        return int(self._git(["show", "--no-patch", "--format=%ct", "HEAD"], tree).stdout)

    def submodules(self, tree: Path) -> tuple[tuple[str, str], ...]:
        """Return the commits of the submodules by their paths, sorted."""
        done = self._git(["submodule", "status", "--recursive"], tree)
        rows = (line[1:].split() for line in done.stdout.splitlines())
        return tuple(sorted((row[1], row[0]) for row in rows))

    def _git(
        self, words: Sequence[str], tree: Path | None = None, *, check: bool = True
    ) -> Completed:
        argv = ["git", *self._options, *words]
        try:
            return self._run(argv, env=self._environment, cwd=tree, check=check)
        except ToolFailed as error:
            error.message = f"{self._source.url}: {error.message}"
            raise
