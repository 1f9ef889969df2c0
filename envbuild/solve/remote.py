"""METADATA of wheels through the network."""

import threading
from collections.abc import Sequence

from envbuild.access import Access
from envbuild.solve.metadata import Reader
from envbuild.solve.wheels import Wheel
from envbuild.tools import addresses
from envbuild.tools.uv_question import Source
from envbuild.tools.wheel_metadata import MetadataReader


def metadata_reader(access: Access, sources: Sequence[Source]) -> Reader:
    """Return how the METADATA of wheels is fetched through the network."""
    reader: list[MetadataReader] = []
    lock = threading.Lock()
    known = [source.url for source in sources if source.url]

    def read(wheel: Wheel) -> str:
        with lock:
            if not reader:
                from envbuild.tools.http import Session

                reader.append(MetadataReader(Session(access)))
        url = addresses.with_login(wheel.url, known)
        return reader[0].read(url, size=wheel.size, name=wheel.filename)

    return read
