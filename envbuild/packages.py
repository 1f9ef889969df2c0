"""Packages as both halves of a lock name them."""

from dataclasses import dataclass

WHEELHOUSE = "envbuild-wheelhouse"
"""What locks call the store's rebuilt wheels in place of an index's name."""
_WHEEL = "pypi:"


def wheel_label(name: str) -> str:
    """Return what a wheel of any spelling of its name is called: `pypi:` and the name of PEP 503.

    Args:
        name: The distribution's name.
    """
    from packaging.utils import canonicalize_name

    return f"{_WHEEL}{canonicalize_name(name)}"


def same_place(place: str) -> str:
    """Return where a finding is (`pypi:NAME`, `pypi:NAME: FILE`, `linux-64`) in its one spelling.

    Args:
        place: As a person wrote it.
    """
    if not place.startswith(_WHEEL):
        return place
    name, colon, rest = place.removeprefix(_WHEEL).partition(":")
    return f"{wheel_label(name)}{colon}{rest}"


@dataclass(frozen=True, kw_only=True, slots=True)
class CondaPackage:
    """One conda record: everything that a lock keeps of it, and nothing that it does not.

    Attributes:
        name: Package name.
        version: Version text as the channel has it.
        build: Build string.
        url: Canonical address of the archive, `CHANNEL/SUBDIR/FILENAME`, never a mirror's.
        sha256: Hex digest of the archive, or None where the channel publishes only md5.
        md5: Hex digest of the archive, or None.
        size: Bytes of the archive; kept only where there is no sha256.
        depends: Match specs, sorted; one per name.
    """

    name: str
    version: str
    build: str
    url: str
    sha256: str | None = None
    md5: str | None = None
    size: int | None = None
    depends: tuple[str, ...] = ()

    @property
    def filename(self) -> str:
        """Name of the archive (`zlib-1.2.11-h7b6447c_3.conda`)."""
        return self.url.rsplit("/", 1)[1]

    @property
    def subdir(self) -> str:
        """The channel's folder: a platform or `noarch`."""
        return self.url.rsplit("/", 2)[1]

    @property
    def channel_url(self) -> str:
        """Canonical address of the channel, without the subdir."""
        return self.url.rsplit("/", 2)[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class PipPackage:
    """One distribution of the PyPI half.

    Attributes:
        name: Normalized name (PEP 503).
        version: Version text, normalized (PEP 440).
        hashes: SHA-256 hex digests of the wheels that the target can use, sorted, without prefix.
        index: Name of the recipe's index that it comes from; None is the default index.
        marker: Environment marker, kept only in universal locks (recipes on the host's Python).
        via: Who asked for it: distribution names, or `recipe`; sorted.
    """

    name: str
    version: str
    hashes: tuple[str, ...]
    index: str | None = None
    marker: str | None = None
    via: tuple[str, ...] = ()
