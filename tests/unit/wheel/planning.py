"""Packages of a lock as somebody read them, for plans."""

from dataclasses import replace

from envbuild.compat.model import Facts
from envbuild.compat.tables import load
from envbuild.native.code import code_of
from envbuild.native.mangled import StringAbi
from envbuild.native.model import ElfFacts, NativeFacts
from envbuild.packages import CondaPackage, PipPackage
from envbuild.pipeline import planning
from envbuild.pipeline.binaries import recorded
from envbuild.recipe.load import LoadedRecipe, loads
from envbuild.wheel.model import Plan
from envbuild.wheel.plan import plan
from envbuild.wheel.readings import Reading

TABLES = load()

CONDA = "https://conda.anaconda.org"


def file(
    path: str,
    *compilers: str,
    abi: StringAbi = "none",
    codes: str = "",
    needed: tuple[str, ...] = (),
) -> ElfFacts:
    return ElfFacts(
        path=path,
        kind="library",
        machine="x86_64",
        soname=path.rpartition("/")[2],
        needed=needed,
        compilers=compilers,
        comments=compilers,
        string_abi=abi,
        codes=frozenset(map(code_of, codes.split())),
    )


def wheel(
    requirement: str,
    *files: ElfFacts,
    read: bool = True,
    via: tuple[str, ...] = (),
    index: str | None = None,
) -> Reading:
    """Return a wheel of the lock; unread it has what the tables say."""
    name, _, version = requirement.partition("==")
    package = PipPackage(name=name, version=version, hashes=("0" * 64,), via=via, index=index)
    return _with_files(recorded(package, TABLES, "linux-64"), files, read=read)


def conda(text: str, *files: ElfFacts, read: bool = True, depends: tuple[str, ...] = ()) -> Reading:
    """Return a conda package of the lock, `CHANNEL::NAME VERSION BUILD`."""
    channel, _, rest = text.partition("::")
    name, version, build = rest.split()
    package = CondaPackage(
        name=name,
        version=version,
        build=build,
        url=f"{CONDA}/{channel}/linux-64/{name}-{version}-{build}.conda",
        sha256="0" * 64,
        depends=depends,
    )
    return _with_files(recorded(package, TABLES, "linux-64"), files, read=read)


def _with_files(reading: Reading, files: tuple[ElfFacts, ...], *, read: bool) -> Reading:
    if not read:
        return reading
    facts = NativeFacts(name=reading.package.name, files=files, other_files=0)
    return replace(reading, facts=facts, read="generation")


def recipe(build: str, more: str = "") -> LoadedRecipe:
    return loads(f"name: x\npython: '3.11'\nbuild: {build}\n{more}", source="x.yaml")


def made(build: str, *readings: Reading, more: str = "", tables: Facts = TABLES) -> Plan:
    """Return the plan of a recipe's `build` for these packages."""
    loaded = recipe(build, more)
    question = planning.question(loaded, tables, "linux-64", python="3.11.7")
    return plan(question, readings, tables)


def answers(found: Plan) -> dict[str, str]:
    """Return the answer by package."""
    return {
        **{one.name: "no" for one in found.spared},
        **{one.name: "unknown" for one in found.unknown},
        **{one.name: "yes" for one in found.rebuilds},
    }
