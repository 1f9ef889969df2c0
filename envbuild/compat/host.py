"""What speaks against a host: all answers of all judges, the worst first."""

from datetime import date

from envbuild.compat import host_cards, host_driver, host_modules, host_mps, host_system
from envbuild.compat.model import Facts
from envbuild.findings import Finding, Findings, Severity
from envbuild.host.machine import Host

_ORDER = tuple(Severity)


def examine(
    host: Host,
    facts: Facts,
    *,
    today: date,
    with_cards: bool = True,
    libraries: frozenset[str] | None = None,
) -> Findings:
    """Return what speaks against a host, errors first.

    Args:
        host: The host.
        facts: The tables.
        today: The day (UTC).
        with_cards: Whether cards matter: they do not for an environment that needs none.
        libraries: Names of an environment's libraries, None for no environment.
    """
    found: list[Finding] = []
    if with_cards:
        found += host_driver.judge(host, facts, today=today)
        found += host_modules.judge(host, facts)
        found += host_cards.judge(host)
        found += host_mps.judge(host)
        found += host_system.judge_cards(host, facts)
    found += host_system.judge_rest(host, libraries)
    found += host_system.root_adds(host)
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.severity)))
