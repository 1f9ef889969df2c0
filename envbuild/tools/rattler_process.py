"""Starting the worker process that loads py-rattler, and taking its answer."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from envbuild.access import Access
from envbuild.errors import ToolFailed
from envbuild.tools.rattler_errors import one_line
from envbuild.tools.run import Runner, Started, Watch, base_environment

_ARGV = (sys.executable, "-I", "-m", "envbuild.tools.rattler_worker")


def ahead(access: Access) -> Started:
    """Start a worker that will be asked soon: it loads the engine while the caller goes on.

    Returns:
        A runner for `work`; the caller closes it, whether it was used or not.
    """
    return Started(_ARGV, env=_environment(access))


def work(
    request: Mapping[str, Any],
    *,
    access: Access,
    runner: Runner,
    timeout_s: float,
    keep: Sequence[int] = (),
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Let a worker act and return its answer.

    Raises:
        Stalled: What watches it had it ended.
        ToolFailed: It ended without an answer (an abort, a panic).
        ToolTimedOut: It did not end in time.
    """
    completed = runner(
        _ARGV,
        env=_environment(access),
        stdin=json.dumps(request),
        timeout_s=timeout_s,
        check=False,
        keep=keep,
        watch=watch,
    )
    tail = completed.stderr.strip()[-4000:]
    if completed.status != 0:
        how = f"signal {-completed.status}" if completed.status < 0 else f"{completed.status}"
        message = f"the conda engine (py-rattler) ended with {how}"
        raise ToolFailed(message, argv=_ARGV, status=completed.status, details=tail)
    try:
        answer: dict[str, Any] = json.loads(completed.stdout)
    except ValueError as error:
        message = "the conda engine (py-rattler) gave no answer"
        raise ToolFailed(message, argv=_ARGV, status=0, details=tail) from error
    failure = answer.get("error", {})
    if failure.get("kind") == "failed":
        message = f"the conda engine (py-rattler) failed: {one_line(failure['text'])}"
        raise ToolFailed(message, argv=_ARGV, status=0, details=tail)
    return answer


def _environment(access: Access) -> dict[str, str]:
    return base_environment() | dict(access.environment)
