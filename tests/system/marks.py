"""Which tests of machines run only where they are asked for."""

import os

import pytest

LONG = "ENVBUILD_SYSTEM_SUITE" in os.environ
CUTS = int(os.environ.get("ENVBUILD_CUTS", "0"))

long = pytest.mark.skipif(not LONG, reason="takes minutes: nox -s system")
cuts = pytest.mark.skipif(not CUTS, reason="takes minutes: nox -s cuts")
