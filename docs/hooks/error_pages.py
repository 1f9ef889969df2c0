"""The pages of `docs/errors/`: what their heads say, and the table of them."""

from collections.abc import Iterable
from pathlib import Path

from envbuild.pipeline import pages
from envbuild.pipeline.pages import ErrorPage


def read(folder: Path) -> tuple[ErrorPage, ...]:
    """Read every page of a folder but its index, by code."""
    found = (pages.error(folder / f"{code}.md") for code in pages.codes(folder))
    return tuple(sorted(found, key=lambda page: page.code))


def with_table(markdown: str, found: Iterable[ErrorPage]) -> str:
    """Put the table in the place of `<!-- table -->`."""
    rows = ["| code | means | kind |", "| --- | --- | --- |"]
    for page in found:
        kinds = ", ".join(f"`{kind}`" for kind in page.kinds)
        rows.append(f"| [{page.code}]({page.code}.md) | {page.means} | {kinds} |")
    return markdown.replace("<!-- table -->", "\n".join(rows))
