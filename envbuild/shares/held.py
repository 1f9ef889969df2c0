"""Which units hold which cards now, as the ledger of `store.cards` below /run has it."""

import json
from pathlib import Path


def holders(root: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return units with their cards; without those whose cgroup is gone."""
    try:
        text = (root / "run/envbuild/cards.json").read_text()
        held = json.loads(text)
    except (OSError, ValueError):
        return ()
    return tuple(
        (unit, tuple(one["cards"]))
        for unit, one in sorted(held.items())
        if (root / f"sys/fs/cgroup{one['cgroup']}").is_dir()
    )
