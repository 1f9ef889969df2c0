"""Mixed commands by four processes on one store: every answer is one that may be given.

`ENVBUILD_STRESS_SECONDS` says how long (the nox session `stress`: an hour), `ENVBUILD_STRESS_SEED`
which commands are drawn.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.site import site
from integration.stress import Stress

_SECONDS = float(os.environ.get("ENVBUILD_STRESS_SECONDS", "120"))
_SEED = int(os.environ.get("ENVBUILD_STRESS_SEED", "1"))
_A_SECOND = 1000 / 3600
"""At least so many commands: a thousand in an hour."""


@pytest.mark.slow
def test_mixed_commands(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    with site(tmp_path, versions=3) as place:
        stress = Stress(place, seconds=_SECONDS, workers=4, seed=_SEED)
        stress.run()
        found = [f"{kind}, exit {code}: {n}" for (kind, code), n in sorted(stress.codes.items())]
        record_property("commands", "; ".join(found))
        wrong = stress.problems + stress.wrong_at_the_end()
        assert not wrong, "\n".join([*found, *wrong])
        assert stress.codes.total() >= _SECONDS * _A_SECOND
