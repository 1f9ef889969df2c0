"""The head of a page: `key: value` lines between two lines of `---`."""

import re
from collections.abc import Collection
from pathlib import Path

_HEAD = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)


def read_head(path: Path, keys: Collection[str]) -> tuple[dict[str, str], str]:
    """Return what a page's head says, and the text below it.

    Args:
        path: The page.
        keys: What the head has to say.

    Raises:
        ValueError: The head says something else.
    """
    text = path.read_text(encoding="utf-8")
    found = _HEAD.match(text)
    lines = found[1].splitlines() if found else []
    parts = (line.partition(":") for line in lines)
    head = {key: value.strip().strip('"') for key, _, value in parts}
    if found is None or head.keys() != set(keys):
        message = f"{path}: the head between two lines of --- has to say {', '.join(keys)}"
        raise ValueError(message)
    return head, text[found.end() :]
