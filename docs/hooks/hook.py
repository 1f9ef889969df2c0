"""What `mkdocs build` does besides: pages that are made from the sources, and their navigation."""

from pathlib import Path
from typing import Any

import finding_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

_HERE = Path(__file__).resolve().parents[1]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put every page of a folder where the navigation has the folder."""
    config.nav = _unfolded(config.nav)
    return config


def on_page_markdown(markdown: str, *, page: Page, **more: object) -> str:  # noqa: ARG001
    """Complete the pages about findings."""
    folder, _, name = page.file.src_uri.rpartition("/")
    if folder != "findings":
        return markdown
    if name == "index.md":
        return finding_pages.with_tables(markdown, finding_pages.read(_HERE / folder))
    return finding_pages.with_allow(markdown, finding_pages.read_one(_HERE / folder / name))


def _unfolded(nav: Any) -> Any:  # noqa: ANN401
    if isinstance(nav, dict):
        return {title: _unfolded(below) for title, below in nav.items()}
    if not isinstance(nav, list):
        return nav
    found: list[Any] = []
    for item in nav:
        if isinstance(item, str) and item.endswith("/"):
            names = sorted(path.name for path in (_HERE / item).glob("*.md"))
            found += [f"{item}{name}" for name in names if name != "index.md"]
        else:
            found.append(_unfolded(item))
    return found
