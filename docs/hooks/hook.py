"""What `mkdocs build` does besides: pages that are made from the sources, and their navigation."""

from pathlib import Path
from typing import Any

import command_pages
import error_pages
import finding_pages
import recipe_page
import setting_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from envbuild.pipeline import pages

_HERE = Path(__file__).resolve().parents[1]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put every page of a folder where the navigation has the folder."""
    config.nav = _unfolded(config.nav, _made())
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the sources."""
    for path, text in _made().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **more: object) -> str:  # noqa: ARG001
    """Put tables where a page asks for them, and complete the pages about findings."""
    path = page.file.src_uri
    if path == "cli.md":
        return markdown.replace("<!-- tables -->", command_pages.tables())
    if path == "configuration.md":
        table = setting_page.table(command_pages.options())
        return markdown.replace("<!-- settings -->", table)
    if path == "errors/index.md":
        return error_pages.with_table(markdown, error_pages.read(_HERE / "errors"))
    if path == "findings/index.md":
        return finding_pages.with_tables(markdown, finding_pages.read(_HERE / "findings"))
    if path.startswith("findings/"):
        return finding_pages.with_allow(markdown, pages.finding(_HERE / path))
    return markdown


def _made() -> dict[str, str]:
    """Return the pages that are made, by their path in the site."""
    made = {f"commands/{name}": text for name, text in command_pages.pages().items()}
    made["recipe-keys.md"] = recipe_page.page()
    made["changelog.md"] = (_HERE.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    return made


def _unfolded(nav: Any, made: dict[str, str]) -> Any:  # noqa: ANN401
    if isinstance(nav, dict):
        return {title: _unfolded(below, made) for title, below in nav.items()}
    if not isinstance(nav, list):
        return nav
    found: list[Any] = []
    for item in nav:
        if isinstance(item, str) and item.endswith("/"):
            there = {f"{item}{path.name}" for path in (_HERE / item).glob("*.md")}
            below = there | {path for path in made if path.startswith(item)}
            found += sorted(below - {f"{item}index.md"}, key=_by_number)
        else:
            found.append(_unfolded(item, made))
    return found


def _by_number(path: str) -> tuple[int, str]:
    """Sort exit codes as numbers, other pages by name."""
    name = Path(path).stem
    return (int(name) if name.isdigit() else 0, path)
