"""Where this command looks for an interpreter of the machine."""

import sys
from pathlib import Path

from envbuild.channel.host import Wish
from envbuild.cli.context import Here


def wish(here: Here, option: str | None, *, added: bool = True) -> Wish:
    """Return where to look for an interpreter.

    Args:
        here: How this command runs.
        option: What `--python` names, or None.
        added: Whether one that `channel add-python` added counts.
    """
    return Wish(
        option=option,
        variable=here.python,
        channels=here.store.channels if added else None,
        running=Path(sys.executable),
        search=here.environment.get("PATH", ""),
    )
