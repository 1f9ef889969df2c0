"""The pages of `docs/errors/`: what their heads say, and the table of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from heads import read_head


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorPage:
    """The head of one page.

    Attributes:
        code: The exit code, which is the file's name.
        means: What it means, one line.
        kinds: Names of the error classes that have it, as `--json` says them.
    """

    code: int
    means: str
    kinds: tuple[str, ...]


def read(folder: Path) -> tuple[ErrorPage, ...]:
    """Read every page of a folder but its index, by code.

    Raises:
        ValueError: A head is not as it should be.
    """
    pages = []
    for path in folder.glob("*.md"):
        if path.stem == "index":
            continue
        head, _ = read_head(path, ("means", "kinds"))
        kinds = tuple(kind.strip() for kind in head["kinds"].split(",") if kind.strip())
        pages.append(ErrorPage(code=int(path.stem), means=head["means"], kinds=kinds))
    return tuple(sorted(pages, key=lambda page: page.code))


def with_table(markdown: str, pages: Iterable[ErrorPage]) -> str:
    """Put the table in the place of `<!-- table -->`."""
    rows = ["| code | means | kind |", "| --- | --- | --- |"]
    for page in pages:
        kinds = ", ".join(f"`{kind}`" for kind in page.kinds)
        rows.append(f"| [{page.code}]({page.code}.md) | {page.means} | {kinds} |")
    return markdown.replace("<!-- table -->", "\n".join(rows))
