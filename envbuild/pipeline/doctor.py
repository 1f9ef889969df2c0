"""Looking at a host, and saying whether an environment may run on it."""

import json
from dataclasses import dataclass
from datetime import date

from envbuild.compat.host import examine
from envbuild.compat.host_words import cards
from envbuild.compat.model import Facts
from envbuild.errors import InputError
from envbuild.findings import Findings, errors_of
from envbuild.host.machine import Host
from envbuild.target import Needs

_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Locked:
    """An environment as far as a host's part in it is concerned.

    Attributes:
        name: Its name.
        origin: What its needs were read from.
        needs: What it needs of a host.
        libraries: Names of its libraries; None where it is not created.
    """

    name: str
    origin: str
    needs: Needs
    libraries: frozenset[str] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """What was seen.

    Attributes:
        host: The host.
        findings: What speaks against it, and against the environment on it.
        locked: The environment, or None.
        admitted: Whether it may run here, None without an environment.
    """

    host: Host
    findings: Findings
    locked: Locked | None = None
    admitted: bool | None = None


def look(host: Host, facts: Facts, *, today: date, locked: Locked | None = None) -> Looked:
    """Judge a host, and an environment on it.

    Args:
        host: The host.
        facts: The tables.
        today: The day (UTC).
        locked: The environment, None for the host alone.
    """
    if locked is None:
        return Looked(host=host, findings=examine(host, facts, today=today))
    from envbuild.compat.admit import admit, needs_no_card

    seen = examine(
        host,
        facts,
        today=today,
        with_cards=bool(cards(host)) and not needs_no_card(locked.needs),
        libraries=locked.libraries or frozenset(),
    )
    is_here = locked.libraries is not None
    refused = admit(locked.needs, host, facts, name=locked.name, is_here=is_here)
    findings = (*refused, *seen)
    return Looked(host=host, findings=findings, locked=locked, admitted=not errors_of(findings))


def saved(text: bytes, *, source: str) -> Host:
    """Return the host of a file that `doctor --save` or `doctor --json` wrote.

    Raises:
        InputError: It is no such file.
    """
    import msgspec

    try:
        data = json.loads(text)
        if not isinstance(data, dict) or "host" not in data:
            raise _not_saved(source, "it has no host")
        if data.get("version") != _VERSION:
            raise _not_saved(source, f"it is of version {data.get('version')}")
        return msgspec.convert(data["host"], Host)
    except msgspec.ValidationError as error:
        raise _not_saved(source, f"{error}") from error
    except ValueError as error:
        raise _not_saved(source, "it is not JSON") from error


def _not_saved(source: str, why: str) -> InputError:
    message = f"{source} is no host that was saved: {why}"
    return InputError(message, source=source, hint="envbuild doctor --save FILE writes one")
