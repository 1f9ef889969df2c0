"""Whether an index is one, where uv found nothing in it: it takes 404 and web pages for empty."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from envbuild.access import Access
from envbuild.errors import FetchError
from envbuild.tools import addresses
from envbuild.tools.uv_question import Source

if TYPE_CHECKING:
    from envbuild.tools.http import Session

_UNKNOWN = re.compile(r"\b([a-z0-9._-]+) was not found in the package registry")
_WITHOUT_FILES = re.compile(r"\bthere (?:are no versions|is no version) of ([a-z0-9._-]+)")
_LINK = re.compile(r"<a\s", re.IGNORECASE)
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
_GONE = (404, 410)


def lacking(text: str) -> list[str]:
    """Return the packages of which uv found nothing that could be used."""
    return sorted({*_UNKNOWN.findall(text), *_WITHOUT_FILES.findall(text)})


def refuse(text: str, names: Iterable[str], sources: Sequence[Source], access: Access) -> None:
    """Look at the indexes that had nothing for uv, whether they are what they should be.

    Args:
        text: What uv said.
        names: Normalized names of the packages that were asked for.
        sources: The indexes that were asked; uv's own default one is not looked at.
        access: How they are reached.

    Raises:
        FetchError: One answers with web pages that list no files, or is not there at all.
    """
    without, missing = set(_WITHOUT_FILES.findall(text)), set(_UNKNOWN.findall(text))
    if access.offline or not (without or missing):
        return
    from envbuild.tools.http import Session

    session = Session(access)
    bound = frozenset(chain.from_iterable(source.packages for source in sources))
    for source in sources:
        if source.url is None:
            continue
        for name in sorted(without):
            if not source.packages or name in source.packages:
                _refuse_page(session, source, name)
        own = source.packages or {*names, *missing} - bound
        if own & missing:
            _refuse_absent(session, source, own)


def _refuse_page(session: "Session", source: Source, name: str) -> None:
    try:
        page = session.get_text(_address(source, name), accept=_ACCEPT)
    except FetchError:
        return  # what uv said stands
    if page.lstrip().startswith("<") and not _LINK.search(page):
        message = f"{source.label} answers with a web page that lists no files ({name})"
        raise FetchError(message, hint="a login page? check address, proxy and login")


def _refuse_absent(session: "Session", source: Source, names: Iterable[str]) -> None:
    """Refuse an index that has neither a list of its projects (PEP 503) nor one of the projects."""
    for name in ("", *sorted(names)):
        try:
            session.get_size(_address(source, name))
        except FetchError as error:
            if getattr(error, "status", None) in _GONE:
                continue
        return
    message = f"{source.label} is not at its address: whatever is asked of it is not found (404)"
    where = "envbuild config shows it" if source.name is None else "the recipe has it"
    raise FetchError(message, hint=f"check that address, most end with /simple ({where})")


def _address(source: Source, name: str) -> str:
    return addresses.join(source.url or "", f"{name}/" if name else "")
