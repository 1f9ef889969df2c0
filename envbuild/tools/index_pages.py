"""Whether an index answered with web pages of somebody else, a login's: uv takes them for empty."""

import re
from collections.abc import Sequence

from envbuild.access import Access
from envbuild.errors import FetchError
from envbuild.tools import addresses
from envbuild.tools.uv_question import Source

_WITHOUT_FILES = re.compile(r"\bthere are no versions of ([a-z0-9._-]+)")
_LINK = re.compile(r"<a\s", re.IGNORECASE)
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"


def refuse_pages(text: str, sources: Sequence[Source], access: Access) -> None:
    """Look at the pages of packages for which uv found no file at all.

    Args:
        text: What uv said.
        sources: The indexes that were asked; uv's own default one is not looked at.
        access: How they are reached.

    Raises:
        FetchError: One of them is a web page that lists no files.
    """
    names = sorted(set(_WITHOUT_FILES.findall(text)))
    if not names or access.offline:
        return
    from envbuild.tools.http import Session

    session = Session(access)
    for source in sources:
        for name in names:
            if source.url is None or (source.packages and name not in source.packages):
                continue
            try:
                page = session.get_text(addresses.join(source.url, f"{name}/"), accept=_ACCEPT)
            except FetchError:
                continue  # what uv said stands
            if page.lstrip().startswith("<") and not _LINK.search(page):
                message = f"{source.label} answers with a web page that lists no files ({name})"
                raise FetchError(message, hint="a login page? check address, proxy and login")
