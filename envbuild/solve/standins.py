"""Stand-in wheels: how uv is told what the conda half provides.

A stand-in is an empty wheel `NAME-VERSION+conda` without requirements. Constrained and not emitted,
it lets uv weigh conda's versions, say in words why something does not go with them, and brings
nothing twice.
"""

import re
import zipfile
from collections.abc import Container, Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from envbuild.solve.names import Provided

_DATE = (1980, 1, 1, 0, 0, 0)
_LOCAL = "conda"
_MARK = re.compile(rf"\+(?:([\w.]+)\.)?{_LOCAL}\b")


def version_text(version: Version) -> str:
    """Return a conda version as its stand-in has it (`2.4.0+conda`)."""
    return f"{version}.{_LOCAL}" if version.local else f"{version}+{_LOCAL}"


def constraints(provided: Iterable[Provided]) -> str:
    """Return a constraints file that allows the stand-ins' versions only."""
    return "".join(f"{one.name}=={version_text(one.version)}\n" for one in provided)


def write(provided: Iterable[Provided], folder: Path) -> None:
    """Write a stand-in wheel per distribution into a folder."""
    for one in provided:
        stem = f"{one.name.replace('-', '_')}-{version_text(one.version)}"
        information = f"{stem}.dist-info"
        members = {
            "METADATA": f"Metadata-Version: 2.1\nName: {one.name}\n"
            f"Version: {version_text(one.version)}\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "".join(
                f"{information}/{name},,\n" for name in ("METADATA", "WHEEL", "RECORD")
            ),
        }
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            for name, text in members.items():
                wheel.writestr(zipfile.ZipInfo(f"{information}/{name}", _DATE), text)


def plain_words(text: str) -> str:
    """Return uv's words with `torch==2.4.0+conda` as `torch==2.4.0 (conda)`."""
    return _MARK.sub(lambda found: f"{f'+{found[1]}' if found[1] else ''} (conda)", text)


def requirement_text(requirement: Requirement, provided: Container[NormalizedName]) -> str:
    """Return a requirement as uv gets it: `===` on a stand-in would compare the text, so `==`."""
    text = str(requirement)
    if canonicalize_name(requirement.name) in provided:
        return text.replace("===", "==")
    return text
