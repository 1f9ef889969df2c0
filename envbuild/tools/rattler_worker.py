"""The process that loads py-rattler: one JSON request on stdin, one JSON answer on stdout.

It leaves through `os._exit` after its answer: py-rattler 0.28 aborts in about one of ten
interpreter shutdowns, after errors as well.
"""

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

Request = dict[str, Any]
Answer = dict[str, Any]


async def _solve(request: Request) -> Answer:
    from envbuild.tools.rattler_solve import solve_all

    return await solve_all(request)


async def _link(request: Request) -> Answer:
    from envbuild.tools.rattler_link import link_all

    return await link_all(request)


async def _canonical(request: Request) -> Answer:
    from envbuild.tools.rattler_solve import canonical

    return {"channels": {name: canonical(name) for name in request["names"]}}


async def _match(request: Request) -> Answer:
    from envbuild.tools.rattler_match import match_all

    return match_all(request)


_ACTIONS: dict[str, Callable[[Request], Awaitable[Answer]]] = {
    "solve": _solve,
    "link": _link,
    "canonical": _canonical,
    "match": _match,
}


async def _act(request: Request) -> Answer:
    return await _ACTIONS[request["do"]](request)


def answer_to(text: str) -> Answer:
    """Do what a request asks; a failure becomes an answer too."""
    try:
        return asyncio.run(_act(json.loads(text)))
    except BaseException as error:  # noqa: BLE001  (a panic in Rust is a BaseException)
        traceback.print_exc()
        return {"error": {"kind": "failed", "text": f"{type(error).__name__}: {error}"}}


def main() -> None:
    """Read, act, answer, leave at once."""
    out = os.dup(1)
    os.dup2(2, 1)  # nothing else may print into the answer
    data = memoryview(json.dumps(answer_to(sys.stdin.read())).encode())
    while data:
        data = data[os.write(out, data) :]
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
