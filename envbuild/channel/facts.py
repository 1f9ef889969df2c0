"""What a packed interpreter says of itself: its digest, and the libraries it needs of a machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envbuild.channel import inspect
from envbuild.errors import HostError, InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class HostFacts:
    """What the package of a machine's interpreter tells.

    Attributes:
        version: Full version.
        digest: The interpreter's digest, hex.
        libraries: Name of each library that stays on the machine (`libssl.so.3`) to the modules
            that need it; glibc's own are not among them.
    """

    version: str
    digest: str
    libraries: Mapping[str, tuple[str, ...]]


def facts(archive: Path) -> HostFacts:
    """Return what a package of `host.pack` tells.

    Raises:
        HostError: It is none, or cannot be read.
    """
    try:
        index, about = inspect.index_of(archive), inspect.about_of(archive)
        extra = about["extra"]["envbuild"]
        return HostFacts(
            version=index["version"],
            digest=extra["digest"],
            libraries={name: tuple(users) for name, users in extra["host_libraries"].items()},
        )
    except (InputError, KeyError, TypeError, AttributeError) as error:
        message = f"{archive} cannot be used as a packed interpreter: {error}"
        raise HostError(message, hint="remove it; it is packed again") from error
