"""Which units hold which cards now, as the ledger of `store.cards` below /run has it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def held(root: Path) -> dict[str, Mapping[str, Any]]:
    """Return units with what they hold; without those whose cgroup is gone."""
    try:
        found: dict[str, Mapping[str, Any]] = json.loads(
            (root / "run/envbuild/cards.json").read_text()
        )
    except (OSError, ValueError):
        return {}
    return {
        unit: one
        for unit, one in sorted(found.items())
        if (root / f"sys/fs/cgroup{one['cgroup']}").is_dir()
    }


def holders(root: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return units with the names of their cards."""
    return tuple((unit, tuple(one["cards"])) for unit, one in held(root).items())
