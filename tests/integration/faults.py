"""What a server on localhost does wrong, the same for channels and indexes."""

import os
import socket
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler
from typing import Literal

LOGIN_PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>...</body></html>\n"
"""What comes instead of a file where somebody has to log in first."""

_HELD_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What goes wrong with one path.

    Attributes:
        status: Answer this status instead of the file.
        body: Send these bytes instead.
        kind: Their content type; by default what the bytes look like.
        redirect: Send the client there.
        hold: Never answer, or stop in the middle of the body; the connection stays open.
        stall_s: Stop in the middle of the body for so many seconds, then close.
        trickle_s: Seconds between the bytes of the body.
        reset: Reset the connection instead of answering, after the headers, or in the body.
        cut: Close after so many bytes of the body, with the whole length announced.
        chunked_cut: Close after so many bytes of a body sent in chunks.
        content_range: Answer a request for a part with the whole file under this Content-Range, in
            which `{start}`, `{end}` and `{total}` are the right numbers.
        times: How often the fault shows before the file is served; None is always.
    """

    status: int | None = None
    body: bytes | None = None
    kind: str | None = None
    redirect: str | None = None
    hold: Literal["start", "body"] | None = None
    stall_s: float = 0
    trickle_s: float = 0
    reset: Literal["start", "headers", "body"] | None = None
    cut: int | None = None
    chunked_cut: int | None = None
    content_range: str | None = None
    times: int | None = None


def shown(faults: dict[str, Fault], path: str) -> Fault | None:
    """Return the fault that a path shows now, and count it."""
    fault = faults.get(path)
    if fault is None or fault.times is None:
        return fault
    if fault.times <= 0:
        return None
    faults[path] = replace(fault, times=fault.times - 1)
    return fault


def content_type(data: bytes) -> str:
    """Return what a server says of bytes that it knows nothing of."""
    return "text/html" if data.startswith(b"<!") else "application/octet-stream"


def instead(handler: BaseHTTPRequestHandler, fault: Fault) -> bool:
    """Show a fault that comes instead of a file; return whether this one does."""
    if fault.hold == "start":
        threading.Event().wait(_HELD_S)
        handler.close_connection = True
    elif fault.reset == "start":
        _reset(handler)
    elif fault.redirect is not None:
        send(handler, 302, b"", {"Location": fault.redirect})
    elif fault.status is not None:
        headers = {"WWW-Authenticate": 'Basic realm="test"'} if fault.status == 401 else {}
        send(handler, fault.status, b"fault\n", headers)
    elif fault.body is not None:
        kind = fault.kind or content_type(fault.body)
        send(handler, 200, fault.body, {"Content-Type": kind})
    else:
        return False
    return True


def send(
    handler: BaseHTTPRequestHandler,
    status: int,
    data: bytes,
    headers: Mapping[str, str],
    fault: Fault | None = None,
) -> None:
    """Send an answer, and on the way what its fault does to it."""
    chunked = fault is not None and fault.chunked_cut is not None
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    if chunked:
        handler.send_header("Transfer-Encoding", "chunked")
    else:
        handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    if handler.command == "HEAD":
        return
    if fault is None or not _send_part(handler, fault, data):
        handler.wfile.write(data)
        return
    handler.close_connection = True


def _send_part(handler: BaseHTTPRequestHandler, fault: Fault, data: bytes) -> bool:
    """Send a body as far as its fault goes; return whether it has one."""
    half = data[: len(data) // 2]
    if fault.hold == "body" or fault.stall_s:
        _write(handler, half)
        threading.Event().wait(fault.stall_s or _HELD_S)
    elif fault.trickle_s:
        for byte in data:
            _write(handler, bytes([byte]))
            threading.Event().wait(fault.trickle_s)
    elif fault.reset is not None:
        _write(handler, half if fault.reset == "body" else b"")
        _reset(handler)
    elif fault.chunked_cut is not None:
        part = data[: fault.chunked_cut]
        _write(handler, b"%x\r\n%s\r\n" % (len(part), part))
    elif fault.cut is not None:
        _write(handler, data[: fault.cut])
    else:
        return False
    return True


def _write(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    handler.wfile.write(data)
    handler.wfile.flush()


def _reset(handler: BaseHTTPRequestHandler) -> None:
    """Close so that the client sees a reset (RST) instead of an end."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    os.close(handler.connection.detach())  # the server's own close would end it in order
    handler.close_connection = True
