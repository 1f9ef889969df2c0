"""Building one generation in its place: fetch, link, check, smoke test, manifest last."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.access import Access
from envbuild.errors import Refused
from envbuild.findings import Finding, Findings, errors_of
from envbuild.packages import CondaPackage
from envbuild.progress import Progress
from envbuild.store import (
    activation,
    bytecode,
    check,
    disk,
    glibc,
    gpu_code,
    halves,
    installed,
    integrate,
    libraries,
    libstdcxx,
    link_scripts,
    links,
    modes,
    needs,
    scripts,
    smoke,
    unit_environment,
)
from envbuild.store import environment as environments
from envbuild.store import manifest as manifests
from envbuild.store.arrivals import Arrivals, Known
from envbuild.store.check import Checked, Row
from envbuild.store.environment import Environment
from envbuild.store.layout import Generation, Store
from envbuild.store.ledger import Ledger
from envbuild.store.libraries import Libraries
from envbuild.store.manifest import InstalledPackage, Interpreter, Manifest
from envbuild.store.order import Order, let_through
from envbuild.store.order import dumps as dumps_order
from envbuild.store.unpacked import unlisted
from envbuild.target import Needs
from envbuild.tools import uv
from envbuild.tools.files import make_folder, remove_tree, write_atomic
from envbuild.tools.run import base_environment
from envbuild.tools.scratch import scratch

if TYPE_CHECKING:
    from envbuild.channel.host import HostPython

_ATTEMPTS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """One build: what, where, and with what.

    Attributes:
        order: What to create; the environment digest is known.
        generation: Where; its prefix is absolute and resolved.
        python_version: Full version of the Python that the prefix gets, or None for none.
        host_python: The machine's interpreter that is packed, or None with conda's.
        interpreter: What the manifest keeps of it.
        compiled: Whether bytecode is compiled.
        access: How the network is reached.
        progress: Who is told.
        now: The instant (UTC) of creation.
        patience_s: How long to wait for another process that fetches the same package.
        keep: Descriptors that children inherit (the store's lock).
    """

    order: Order
    generation: Generation
    python_version: str | None
    host_python: "HostPython | None"
    interpreter: Interpreter | None
    compiled: bool
    access: Access
    progress: Progress
    now: datetime
    patience_s: float
    keep: Sequence[int] = ()

    @property
    def prefix(self) -> Path:
        """The generation's prefix."""
        return self.generation.prefix

    @property
    def log(self) -> Path:
        """Where the output of programs goes; it outlives a failed build."""
        return self.generation.place.root / "logs" / f"{self.generation.identifier}.log"

    @property
    def ledger(self) -> Ledger:
        """The store's ledger."""
        return Ledger(self.store.ledger)

    @property
    def store(self) -> Store:
        """The store."""
        return self.generation.place.store


def build(work: Build) -> Manifest:
    """Make a generation; on any failure nothing of it stays, but its log.

    Args:
        work: What, where, and with what.

    Raises:
        Refused: Findings are errors, or the smoke test failed.
        FetchError: An archive is out of reach or has another hash; nothing was linked.
        ToolError: An engine or a program failed.
        StoreError: The disk is full, or the store cannot be written.
    """
    try:
        make_folder(work.log.parent)
        work.log.unlink(missing_ok=True)
        return _build(work)
    except BaseException as error:
        with contextlib.suppress(OSError):
            remove_tree(work.prefix)
        if isinstance(error, KeyboardInterrupt):
            work.log.unlink(missing_ok=True)
        if problem := disk.full(work.store, error):
            raise problem from error
        raise


def _build(work: Build) -> Manifest:
    conda, checked, notes, read = _linked(work)
    findings = _accepted(work, (*work.order.findings, *notes, *checked.findings))
    halves.note_accepted(work)
    environment, said = activation.compute(
        work.prefix,
        name=work.order.name,
        platform=work.order.platform,
        compiler=work.order.compiler,
        keep=work.keep,
    )
    findings = (*findings, *_accepted(work, said))
    needed = _needed(work, read, findings)
    rows = [*checked.rows, *_write_own(work, environment, needed)]
    _smoke_test(work, environment)
    if work.compiled:
        rows = _compile(work, environment, rows)
    rows.sort(key=itemgetter(0))
    size = sum(map(itemgetter(4), rows))
    findings = (*findings, *disk.copied(work.store, work.prefix, size=size))
    return _write_manifest(work, conda, checked.owners, rows, findings)


def _linked(work: Build) -> tuple[tuple[CondaPackage, ...], Checked, Findings, Libraries]:
    """Fetch, link and check both halves; where a cache was changed, evict and begin anew."""
    cache = work.store.uv_cache
    for attempt in range(1, _ATTEMPTS + 1):
        with (
            Arrivals(uv.unpacked(cache), lambda: uv.unpacking(cache)) as arrivals,
            halves.fetched(work, arrivals.contents) as (fetched, contradicted),
        ):
            conda = tuple(one.package for one in fetched)
            spoiled = contradicted.spoiled if attempt < _ATTEMPTS else ()
            ran = None
            if not spoiled:
                _accepted(work, contradicted.findings)
                ran = halves.link(work, fetched)
        if ran is not None:
            checked, notes, read = _looked_at(work, arrivals.contents, ran)
            spoiled = checked.spoiled
            if not spoiled or attempt == _ATTEMPTS:
                return conda, checked, (*contradicted.findings, *notes), read
        work.progress.step("files in the cache were changed: fetching their packages anew")
        halves.evict(work, conda, spoiled)
        remove_tree(work.prefix)
    raise AssertionError


def _looked_at(
    work: Build, contents: Mapping[Known, str], ran: link_scripts.Ran
) -> tuple[Checked, Findings, Libraries]:
    """Check what was linked, read its libraries, and give everything its final mode."""
    integrate.write_conda_files(work.generation, now=work.now)
    seen = installed.walk(work.prefix)
    checked, owners = _check(work, seen, contents, ran.rewritten)
    if checked.again:
        halves.install_again(work, checked.again)
        seen = installed.walk(work.prefix)
        checked, owners = _check(work, seen, contents, ran.rewritten)
    modes.set_modes(work.prefix, seen)
    notes = (*ran.findings, *scripts.check_interpreters(work.prefix, seen, owners))
    notes = (*notes, *links.dangling(work.prefix, checked), *unlisted(owners))
    if errors_of(checked.findings):
        return checked, notes, {}
    platform, needed = work.order.platform, work.order.needs
    read = libraries.read(work.prefix, seen, owners, work.ledger, platform=platform)
    notes = (*notes, *libstdcxx.judge(work.prefix, read), *glibc.lacking(read, needed))
    return checked, (*notes, *gpu_code.lacking(gpu_code.of(read), needed)), read


def _needed(work: Build, read: Libraries, findings: Findings) -> Needs:
    """Return what the environment needs of a host, with what its files say."""
    needed = gpu_code.completed(work.order.needs, gpu_code.of(read))
    return glibc.completed(needed, read, findings, packed=work.host_python is not None)


def _check(
    work: Build,
    seen: installed.Seen,
    contents: Mapping[Known, str],
    rewritten: frozenset[str],
) -> tuple[Checked, Sequence[installed.Owner]]:
    ledger = work.ledger
    owners = list(installed.conda_owners(work.prefix, seen))
    owners += installed.wheel_owners(work.prefix, seen, ledger, apart_from=owners)
    claims = ((path, owner.label) for owner in owners for path in owner.paths)
    disk.refuse_alike(work.generation.own, claims)
    known = ledger.trees([owner.package for owner in owners if owner.is_conda])
    total = 0

    def done(count: int) -> None:
        nonlocal total
        total += count
        work.progress.amount("checked", total, None)

    checked = check.check(
        work.prefix, seen, owners, known, contents=contents, rewritten=rewritten, done=done
    )
    ledger.remember(checked.learned)
    return checked, owners


def _accepted(work: Build, findings: Findings) -> Findings:
    """Return findings with what the recipe lets through.

    Raises:
        Refused: Some are errors.
    """
    findings = let_through(findings, work.order.allow, today=work.now.date())
    if errors := errors_of(findings):
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        message = f"{errors[0].where}: {errors[0].what} [{errors[0].code}]{more}"
        details = "\n".join(map(_line, errors)) if more else errors[0].why
        raise Refused(message, hint=errors[0].hint, details=details)
    return findings


def _line(finding: Finding) -> str:
    why = f": {finding.why}" if finding.why else ""
    return f"{finding.severity}: {finding.where}: {finding.what}{why} [{finding.code}]"


def _write_own(work: Build, environment: Environment, needed: Needs) -> list[Row]:
    """Write our own files, but the manifest; return the rows of those that never change."""
    made = work.generation
    _write_plain(made.needs, needs.dumps(needed))
    rows: list[Row] = []
    for path, text in (
        (made.environment, environments.dumps(environment)),
        (made.order, dumps_order(work.order)),
        (made.unit_environment, unit_environment.dumps(environment)),
        *((made.own / name, text) for name, text in unit_environment.SCRIPTS.items()),
    ):
        content = _write_plain(path, text)
        digest = hashlib.sha256(content).hexdigest()
        name = f"{path.relative_to(work.prefix)}"
        rows.append([name, "file", digest, modes.PLAIN, len(content), None])
    return rows


def _write_plain(path: Path, text: str) -> bytes:
    content = text.encode()
    path.write_bytes(content)
    path.chmod(modes.PLAIN)
    return content


@contextlib.contextmanager
def _home(environment: Environment) -> Iterator[dict[str, str]]:
    """Yield an activated environment with a home of its own, removed at the end."""
    with scratch() as (folder, _):
        home = folder / "home"
        home.mkdir()
        yield environment.apply({**base_environment(), "HOME": f"{home}", "TMPDIR": f"{home}"})


def _smoke_test(work: Build, environment: Environment) -> None:
    if not work.order.imports and not work.order.commands:
        return
    work.progress.step("smoke test")
    with _home(environment) as variables:
        smoke.smoke_test(
            work.prefix,
            imports=work.order.imports,
            commands=work.order.commands,
            environment=variables,
            log=work.log,
            keep=work.keep,
        )


def _compile(work: Build, environment: Environment, rows: list[Row]) -> list[Row]:
    """Compile what has no bytecode yet, and add it to the rows."""
    if work.python_version is None:
        return rows
    tag = "cpython-" + "".join(work.python_version.split(".")[:2])
    there = {str(row[0]) for row in rows}
    targets: dict[str, str] = {}
    for path in bytecode.sources([str(row[0]) for row in rows]):
        folder, _, name = path.rpartition("/")
        target = f"{folder}/__pycache__/{name[:-3]}.{tag}.pyc"
        if target not in there:
            targets[target] = path
    work.progress.step(f"compiling {len(targets)} sources")
    with _home(environment) as variables:
        bytecode.compile_sources(
            work.prefix, list(targets.values()), environment=variables, keep=work.keep
        )
    owners = {str(row[0]): row[5] for row in rows}
    return rows + bytecode.rows(work.prefix, targets, owners)


def _write_manifest(
    work: Build,
    conda: Sequence[CondaPackage],
    owners: Sequence[str],
    rows: list[Row],
    findings: Findings,
) -> Manifest:
    order = work.order
    text = manifests.dumps_files(owners, rows)
    write_atomic(work.generation.own / manifests.FILES, text)
    manifest = Manifest(
        name=order.name,
        generation=work.generation.identifier,
        environment_digest=order.environment_digest,
        solve_digest=order.solve_digest,
        platform=order.platform,
        prefix=f"{work.prefix}",
        created=work.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        inputs=order.inputs,
        interpreter=work.interpreter,
        packages=_packages(work, conda),
        findings=findings,
        file_count=len(rows),
        file_bytes=sum(map(itemgetter(4), rows)),
        compiled=work.compiled,
        files_sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
    manifests.write(work.generation, manifest)
    return manifest


def _packages(work: Build, conda: Sequence[CondaPackage]) -> tuple[InstalledPackage, ...]:
    unhashed = [halves.archive_key(package) for package in conda if package.sha256 is None]
    first = work.ledger.digests(unhashed)
    return (
        *(
            InstalledPackage(
                kind="conda",
                name=package.name,
                version=package.version,
                build=package.build,
                source=package.url,
                digest=package.sha256 or first.get(halves.archive_key(package), ""),
                weak=package.sha256 is None,
            )
            for package in conda
        ),
        *(
            InstalledPackage(
                kind="pypi",
                name=package.name,
                version=package.version,
                source=package.index or "",
            )
            for package in work.order.pip
        ),
    )
