"""METADATA of a wheel from where the index has it: its sidecar (PEP 658), else its own zip."""

import io
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from envbuild.errors import FetchError
from envbuild.tools import remote_zip
from envbuild.tools.remote_zip import RemoteZip

if TYPE_CHECKING:
    from envbuild.tools.http import Session

_NO_FILE_STATUS, _SERVER_STATUS = 400, 500
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_MOST_BYTES = 16 << 20


class MetadataReader:
    """Reads METADATA; a place that answered no sidecar so far is not asked for more of them."""

    def __init__(self, session: "Session") -> None:
        """Keep what fetches; may be used from several threads."""
        self._session = session
        self._has_sidecars: dict[str, bool] = {}

    def read(self, url: str, *, size: int | None, name: str) -> str:
        """Return the METADATA of a wheel.

        Args:
            url: Where the wheel is.
            size: Its bytes as the index lists them, or None.
            name: What messages call it.

        Raises:
            FetchError: It cannot be had, or is no wheel.
        """
        place = urlsplit(url).netloc
        if self._has_sidecars.get(place, True):
            try:
                text = self._session.get_text(f"{url}.metadata")
            except FetchError as error:
                if not _NO_FILE_STATUS <= getattr(error, "status", 0) < _SERVER_STATUS:
                    raise
                self._has_sidecars.setdefault(place, False)
            else:
                self._has_sidecars[place] = True
                return text
        with remote_zip.opened(self._session, url, size, name) as archive:
            return metadata_in(archive)


def metadata_in(archive: RemoteZip) -> str:
    """Return the METADATA that a wheel holds.

    Raises:
        FetchError: It cannot be had, or the wheel does not hold one.
    """
    names = [name for name in archive.names if _METADATA.fullmatch(name)]
    if len(names) != 1:
        message = f"{archive.name} has {len(names)} METADATA files instead of one"
        raise FetchError(message, hint="see what the index serves under that name")
    content = io.BytesIO()
    archive.copy(names[0], content, most_bytes=_MOST_BYTES)
    return content.getvalue().decode(errors="replace")
