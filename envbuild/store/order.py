"""`Order`: everything that creation is told, in one value that can be kept as JSON.

Reading a recipe and a lock takes longer than linking 22,000 files from a warm cache, so what was
read and found good is kept in the store's cache, by the digests of the files it was read from.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from envbuild.findings import Finding, Findings, Severity
from envbuild.packages import CondaPackage, PipPackage, same_place
from envbuild.store.manifest import Inputs
from envbuild.target import Need, Needs, Platform


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderIndex:
    """A PyPI index besides the default one: name, address without login, its packages."""

    name: str
    url: str
    packages: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowed:
    """A finding that the recipe lets through until a day (included), for a reason."""

    code: str
    reason: str
    until: str
    where: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What to create.

    Attributes:
        name: The recipe's name.
        platform: conda subdir.
        glibc: The recipe's oldest glibc.
        environment_digest: It names the generation; 64 hex digits. With the host's interpreter it
            is not known before the interpreter is chosen, and empty.
        solve_digest: The lock's.
        conda: conda half, sorted by name.
        pip: PyPI half, sorted by name; markers are still there in a universal lock.
        indexes: Where packages of named indexes come from.
        host_python: Version range of the host's interpreter, or None with conda's.
        compiler: The recipe's `build.compiler`.
        link_scripts: Names of packages whose link scripts may run.
        imports: Modules of the smoke test.
        commands: Commands of the smoke test.
        allow: Findings that are let through.
        needs: What a host must have.
        inputs: The files it was read from.
        findings: What reading had to say.
    """

    name: str
    platform: Platform
    glibc: str
    environment_digest: str
    solve_digest: str
    conda: tuple[CondaPackage, ...]
    pip: tuple[PipPackage, ...]
    needs: Needs
    inputs: Inputs
    indexes: tuple[OrderIndex, ...] = ()
    host_python: str | None = None
    compiler: str | None = None
    link_scripts: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    allow: tuple[Allowed, ...] = ()
    findings: Findings = ()


def dumps(order: Order) -> str:
    """Return an order as JSON."""
    return json.dumps(asdict(order), separators=(",", ":"), ensure_ascii=False)


def loads(text: str | bytes) -> Order:
    """Return the order of a text that `dumps` wrote.

    Raises:
        ValueError: It is no such text.
    """
    try:
        return _order(json.loads(text))
    except (KeyError, TypeError) as error:
        message = f"not an order: {error}"
        raise ValueError(message) from error


def let_through(findings: Findings, allow: tuple[Allowed, ...], *, today: date) -> Findings:
    """Turn findings that the recipe lets through into notes that say so.

    Args:
        findings: What checks answered.
        allow: What the recipe lets through.
        today: The day (UTC); an entry counts on its last day.
    """
    valid = [entry for entry in allow if entry.until >= today.isoformat()]
    return tuple(_noted(finding, valid) for finding in findings)


def _noted(finding: Finding, allow: list[Allowed]) -> Finding:
    for entry in allow:
        if entry.code == finding.code and (
            entry.where is None or same_place(entry.where) == same_place(finding.where)
        ):
            return Finding(
                code=finding.code,
                severity=Severity.NOTE,
                where=finding.where,
                what=finding.what,
                why=f"let through until {entry.until}: {entry.reason}",
            )
    return finding


def _order(data: dict[str, Any]) -> Order:
    inputs = data["inputs"]
    return Order(
        **{
            **data,
            "conda": tuple(
                CondaPackage(**{**row, "depends": tuple(row["depends"])}) for row in data["conda"]
            ),
            "pip": tuple(
                PipPackage(**{**row, "hashes": tuple(row["hashes"]), "via": tuple(row["via"])})
                for row in data["pip"]
            ),
            "needs": Needs(**{field: Need(**need) for field, need in data["needs"].items()}),
            "inputs": Inputs(recipe=_pairs(inputs["recipe"]), lock=_pairs(inputs["lock"])),
            "indexes": tuple(_index(row) for row in data["indexes"]),
            "allow": tuple(Allowed(**row) for row in data["allow"]),
            "findings": tuple(_finding(row) for row in data["findings"]),
            **{field: tuple(data[field]) for field in ("link_scripts", "imports", "commands")},
        }
    )


def _pairs(rows: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((path, digest) for path, digest in rows)


def _index(row: Mapping[str, Any]) -> OrderIndex:
    return OrderIndex(name=row["name"], url=row["url"], packages=tuple(row["packages"]))


def _finding(row: Mapping[str, Any]) -> Finding:
    return Finding(**{**row, "severity": Severity(row["severity"])})
