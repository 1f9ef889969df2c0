"""What linking left in a prefix: records put right, a mark of a cache taken away."""

import json
from collections.abc import Mapping
from pathlib import Path


def settle(prefix: Path, moved: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Put the records in `conda-meta` right, and take away what would surprise.

    They get mode 0644 and name the cache's own folders. The `CACHEDIR.TAG` that py-rattler writes
    goes: backups leave out folders that have one, and a prefix is no cache.

    Args:
        prefix: The prefix.
        moved: Folder as the engine saw it to the folder that it really is.

    Returns:
        Package name to its installed files, relative to the prefix.
    """
    replaced = {Path(old).name: (_in_json(old), _in_json(new)) for old, new in moved.items()}
    installed: dict[str, tuple[str, ...]] = {}
    for path in sorted((prefix / "conda-meta").glob("*.json")):
        text = path.read_text(encoding="utf-8")
        if path.stem in replaced:
            text = text.replace(*replaced[path.stem])
        record = json.loads(text)
        installed[record["name"]] = tuple(sorted(record["files"]))
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
    (prefix / "CACHEDIR.TAG").unlink(missing_ok=True)
    return installed


def _in_json(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)
