"""Listing what works of all releases, against an interpreter that imports click and reads TOML."""

import sys
from pathlib import Path

from harness import Pair, Side

from envbuild.cli.sets import TABLES
from envbuild.compat.tables import SHIPPED

PYTHON = sys.executable
ENVBUILD = str(Path(PYTHON).parent / "envbuild")
READ = """
import sys, tomllib
import click
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        tomllib.load(file)
"""


def pairs(_: Path) -> list[Pair]:
    """Return the pair; both read the same files."""
    files = [str(SHIPPED / f"{name}.toml") for name in TABLES]
    return [
        Pair(
            name="triangle list, all releases",
            ours=Side(
                name="envbuild triangle list",
                argv=[(ENVBUILD, "--no-config", "triangle", "list")],
                env={},
            ),
            theirs=Side(name="click, and tomllib", argv=[(PYTHON, "-c", READ, *files)], env={}),
            bound=3,
            repeat=15,
        )
    ]
