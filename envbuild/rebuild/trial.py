"""A rebuilt wheel in a fresh environment with what the lock has beside it: does it import?"""

import re
import zipfile
from dataclasses import replace
from pathlib import Path

from envbuild.errors import ToolFailed
from envbuild.findings import Findings
from envbuild.packages import WHEELHOUSE, PipPackage
from envbuild.rebuild import environment, proof
from envbuild.rebuild.house import House
from envbuild.rebuild.provenance import Statement
from envbuild.tools import sandbox, uv
from envbuild.tools.run import base_environment
from envbuild.tools.scratch import scratch
from envbuild.tools.uv_question import Source

_MODULE = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_]*)(?:/__init__\.py|\.py|(?:\.[A-Za-z0-9_-]+)*\.so)"
)
_BESIDE = frozenset({"tests", "test", "testing", "docs", "examples", "benchmarks", "setup"})
_NO_DRIVER = re.compile(r"lib(cuda|nvidia-ml)\.so\.1")
_IMPORT_S = 600.0


def modules(wheel: Path) -> tuple[str, ...]:
    """Return the names of what a wheel lets one import, at its top."""
    with zipfile.ZipFile(wheel) as archive:
        names = [_MODULE.fullmatch(name) for name in archive.namelist()]
    return tuple(sorted({match["name"] for match in names if match} - _BESIDE))


def imports(
    wheel: Path,
    statement: Statement,
    log: Path,
    around: environment.Around,
    engine: uv.Engine,
) -> Findings:
    """Install a wheel with what the lock has into a fresh environment, and import it there.

    Args:
        wheel: The file.
        statement: Its provenance.
        log: What its build printed.
        around: What the lock has.
        engine: How uv is run.

    Returns:
        A note where it needs a driver that this host has not.

    Raises:
        ToolFailed: It cannot be imported.
        FetchError: Something that the lock has is out of reach.
    """
    found = modules(wheel)
    if not found:
        return ()
    with scratch(engine.cache.parent) as (folder, _):
        house = House(folder / "house")
        kept = house.put(wheel, statement, log)
        own = PipPackage(
            name=kept.name, version=str(kept.version), hashes=(kept.sha256,), index=WHEELHOUSE
        )
        others = [one for one in around.pip if one.name != kept.name]
        source = Source(name=WHEELHOUSE, url=house.address, packages=frozenset({kept.name}))
        named = [one for one in around.sources if one.name != WHEELHOUSE]
        environment.make(folder / "env", others, around, engine)
        environment.install(
            folder / "env", [own], replace(around, sources=(*named, source)), engine
        )
        code = "; ".join(f"import {name}" for name in found)
        argv = [f"{folder}/env/bin/python", "-c", code]
        if sandbox.refusal(folder, folder) is None:
            argv = sandbox.argv(argv, at={folder: folder}, folder=folder)
        try:
            engine.run(argv, env=base_environment(), cwd=folder, timeout_s=_IMPORT_S)
        except ToolFailed as error:
            if _NO_DRIVER.search(error.details):
                last = error.details.strip().splitlines()[-2:]
                return (proof.no_driver(kept.name, last[0]),)
            error.message = f"{wheel.name} cannot be imported: {error.message}"
            raise
    return ()
