"""Rendering a recipe that a test writes, for a made-up generation."""

from pathlib import Path

from envbuild.recipe.load import loads
from envbuild.units.model import Manager, Origin
from envbuild.units.render import Templates, render

PREFIX = "/var/lib/envbuild/envs/x/generations/0123456789abcdef"


def origin(name: str = "x", *, interpreter: str | None = None) -> Origin:
    prefix = PREFIX.replace("/x/", f"/{name}/")
    return Origin(name=name, prefix=prefix, own=f"{prefix}/.envbuild", interpreter=interpreter)


def rendered(
    text: str, *, name: str = "x", manager: Manager | None = None, site: Path | None = None
) -> dict[str, str]:
    """Return the units of a recipe by their names; `text` is what follows its name."""
    loaded = loads(f"name: {name}\n{text}", source=f"{name}.yaml")
    templates = Templates((site,) if site else ())
    files = render(loaded, origin(name), manager or Manager(), templates)
    return {file.name: file.text for file in files}


def values(text: str, directive: str) -> list[str]:
    """Return every value of a directive."""
    return [
        line.removeprefix(f"{directive}=")
        for line in text.splitlines()
        if line.startswith(f"{directive}=")
    ]
