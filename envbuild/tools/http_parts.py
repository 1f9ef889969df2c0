"""Answers to a request for a part of a file: checked against what was asked for."""

import re
from collections.abc import Iterable

import requests

from envbuild.errors import FetchError
from envbuild.tools import addresses, http_errors
from envbuild.tools.parts import Part

_PARTIAL = 206
_WHOLE_BYTES = 64 << 20
_RANGE = re.compile(r"bytes (?P<first>[0-9]{1,18})-(?P<last>[0-9]{1,18})/(?P<total>[0-9]{1,18}|\*)")


def received(
    url: str, response: requests.Response, start: int, stop: int, chunks: Iterable[bytes]
) -> Part:
    """Return what came for the bytes from `start` to before `stop`.

    Args:
        url: What was asked for.
        response: The answer; a whole file is one too.
        start: First byte.
        stop: The byte after the last one.
        chunks: The answer's body.

    Raises:
        FetchError: It is not that, or a whole file of more than 64 MiB.
    """
    bare = addresses.without_login(url)
    mark = response.headers.get("ETag", "")
    if response.status_code != _PARTIAL:
        length = response.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _WHOLE_BYTES:
            message = f"{bare}: the server sends no parts of files"
            raise FetchError(message, hint="use an index whose server answers range requests")
        data = b"".join(chunks)
        http_errors.refuse_page(url, response, data)
        return Part(data=data, start=0, total=len(data), mark=mark)
    match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    total = None if match is None or match["total"] == "*" else int(match["total"])
    last = (stop if total is None else min(stop, total)) - 1
    if match is None or (int(match["first"]), int(match["last"])) != (start, last):
        raise _other(bare, start, stop, response.headers.get("Content-Range", "no Content-Range"))
    data = b""
    for chunk in chunks:
        data += chunk
        if len(data) > last + 1 - start:
            break
    if len(data) != last + 1 - start:
        raise _other(bare, start, stop, f"{len(data)} bytes or more")
    return Part(data=data, start=start, total=total, mark=mark)


def _other(bare: str, start: int, stop: int, came: str) -> FetchError:
    message = f"{bare}: asked for bytes {start} to {stop - 1}, the server sent others ({came})"
    return FetchError(message, hint="the server or a proxy does not do range requests right")
