"""One spelling for what a recipe can write in several: version ranges and addresses."""

import re
from urllib.parse import urlsplit, urlunsplit

_OPERATOR = re.compile(r"\s*(,|\|)\s*|([<>=!~]=?=?)\s+")


def version_range(text: str) -> str:
    """Return a version range in one spelling: no spaces, the parts in order."""
    if "(" in text:
        return tight(text)
    alternatives = (
        sorted(part for part in one.split(",") if part) for one in tight(text).split("|")
    )
    return "|".join(",".join(parts) for parts in alternatives)


def readable_range(text: str) -> str:
    """Return a version range as a person writes it: what it is at least comes first."""
    alternatives = version_range(text).split("|")
    parts = (sorted(one.split(","), key=lambda part: part.startswith("<")) for one in alternatives)
    return "|".join(",".join(one) for one in parts)


def tight(text: str) -> str:
    """Return a spec without the spaces around operators, commas and bars."""
    return _OPERATOR.sub(lambda match: match[1] or match[2], " ".join(text.split()))


def named_range(text: str) -> str:
    """Return `name range` (`PyTorch == 2.4.0`) in one spelling (`pytorch==2.4.0`)."""
    return re.sub(r"\s*([<>=!~,|]+)\s*", r"\1", " ".join(text.split())).lower()


def channel(text: str) -> str:
    """Return a channel's name or address without login and trailing slash."""
    return without_login(text.strip().rstrip("/"))


def without_login(address: str) -> str:
    """Return an address without user and password; other text is returned as it is."""
    address = address.strip()
    if "://" not in address:
        return address
    split = urlsplit(address)
    return urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2]))
