"""What a service needs and its own sandbox hides: a `Finding` that names the directive.

What lies in a home is shown to the service although ProtectHome= hides homes (`paths`); temporary
folders are its own, and nothing of the host's is in them (systemd.exec(5), PrivateTmp=).
"""

from collections.abc import Iterator
from typing import Final

from envbuild.document import Path
from envbuild.findings import Finding, Findings, Severity
from envbuild.recipe.load import LoadedRecipe
from envbuild.recipe.service import Service
from envbuild.recipe.service_checks import argv
from envbuild.units.model import Manager
from envbuild.units.paths import within

_TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108 - nothing is written there
_PRIVATE: Final = "a service has temporary folders of its own, empty at start (systemd.exec(5))"


def judge(loaded: LoadedRecipe, manager: Manager, *, prefix: str) -> Findings:
    """Return what services could not find; a user's manager hides nothing.

    Args:
        loaded: The recipe.
        manager: The systemd that its units are for.
        prefix: Absolute path of the generation.
    """
    if manager.scope == "user":
        return ()
    hint = "a store elsewhere: --store DIR, or ENVBUILD_STORE"
    found = list(_temporary(prefix, "the generation", prefix, hint))
    for name, service in loaded.recipe.services.items():
        for field, text in _named(service):
            path: Path = ("services", name, *field)
            hint = "name a folder elsewhere; or, in a drop-in, PrivateTmp=no"
            found += _temporary(text, ".".join(map(str, path)), loaded.where(*path), hint)
    return tuple(found)


def _named(service: Service) -> Iterator[tuple[Path, str]]:
    """Give every path that a service names, with its field."""
    yield ("exec",), argv(service.exec)[0]
    yield ("working_directory",), service.working_directory or ""
    for field, paths in (("read", service.read), ("write", service.write)):
        for number, path in enumerate(paths):
            yield (field, number), path


def _temporary(path: str, what: str, where: str, hint: str) -> Iterator[Finding]:
    folder = next((one for one in _TEMPORARY if within(path, one)), None)
    if folder is not None:
        yield Finding(
            code="path-hidden",
            severity=Severity.WARNING,
            where=where,
            what=f"{what} lies in {folder}, which PrivateTmp=yes hides from a service: it would not"
            " start",
            why=_PRIVATE,
            hint=hint,
        )
