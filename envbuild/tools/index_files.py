"""The files that an index lists for a project, in JSON (PEP 691, PEP 700) or HTML (PEP 503)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from envbuild.errors import FetchError
from envbuild.tools import addresses

if TYPE_CHECKING:
    from envbuild.tools.http import Session

_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexFile:
    """One file of a project.

    Attributes:
        filename: Its name.
        url: Where it is, with the index's login where that is on the same host.
        sha256: Its digest as the index lists it, or None.
        size: Its bytes as the index lists them, or None.
        uploaded: When it was uploaded (UTC), or None where the index does not say.
        requires_python: Versions of Python that it is for, or None.
        yanked: Whether it was taken back.
    """

    filename: str
    url: str
    sha256: str | None = None
    size: int | None = None
    uploaded: datetime | None = None
    requires_python: str | None = None
    yanked: bool = False


def listed(session: "Session", index: str, project: str) -> tuple[IndexFile, ...]:
    """Return the files that an index lists for a project.

    Args:
        session: What fetches.
        index: Address of the index, which may hold a login.
        project: Normalized name.

    Raises:
        FetchError: It cannot be reached, has no such project, or answers with something else.
    """
    url = addresses.join(index, f"{project}/")
    page = session.get_text(url, accept=_ACCEPT)
    try:
        return tuple(files(page, url))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        message = f"{addresses.without_login(url)}: not a page of an index"
        hint = "a login page? check address, proxy and login"
        raise FetchError(message, hint=hint) from error


def files(page: str, url: str) -> Iterator[IndexFile]:
    """Yield the files of a project's page.

    Args:
        page: Its text, JSON or HTML.
        url: Where it came from.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: It is no such page.
    """
    if page.lstrip().startswith("<"):
        links = _Links()
        links.feed(page)
        if not links.found:
            message = "a web page without links"
            raise ValueError(message)
        yield from (_of_link(link, url) for link in links.found)
        return
    for row in json.loads(page)["files"]:
        yield _of_row(row, url)


def _of_row(row: Mapping[str, Any], url: str) -> IndexFile:
    uploaded, size = row.get("upload-time"), row.get("size")
    return IndexFile(
        filename=str(row["filename"]),
        url=_absolute(url, str(row["url"])),
        sha256=_digest(row.get("hashes", {}).get("sha256")),
        size=size if isinstance(size, int) and size >= 0 else None,
        uploaded=None if uploaded is None else datetime.fromisoformat(uploaded).astimezone(UTC),
        requires_python=row.get("requires-python") or None,
        yanked=bool(row.get("yanked", False)),
    )


def _of_link(link: Mapping[str, str], url: str) -> IndexFile:
    place, fragment = urldefrag(link["href"])
    kind, _, digest = fragment.partition("=")
    return IndexFile(
        filename=unquote(urlsplit(place).path.rpartition("/")[2]),
        url=_absolute(url, place),
        sha256=_digest(digest if kind == "sha256" else None),
        requires_python=link.get("data-requires-python") or None,
        yanked="data-yanked" in link,
    )


def _absolute(base: str, place: str) -> str:
    url = urljoin(base, place)
    if urlsplit(url).scheme not in ("http", "https"):
        message = f"{place} is no address"
        raise ValueError(message)
    return addresses.with_login(url, [base])


def _digest(text: object) -> str | None:
    """Return a SHA-256 in lower case, or None for what is none."""
    lower = str(text).lower()
    return lower if len(lower) == 64 and not set(lower) - set("0123456789abcdef") else None  # noqa: PLR2004


class _Links(HTMLParser):
    """Collects the attributes of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a link."""
        attributes = {name: value or "" for name, value in attrs}
        if tag == "a" and attributes.get("href"):
            self.found.append(attributes)
