"""How a recipe writes where sources come from: each text checked, as in `envbuild.recipe.words`."""

import re
from urllib.parse import urlsplit


def _expected(what: str, text: str) -> ValueError:
    return ValueError(f"expected {what}, found {text!r}")


def git_url(text: str) -> str:
    """Check the address of a git repository; a user name is for ssh alone."""
    what = "the address of a git repository (https, http, ssh or file)"
    try:
        parts = urlsplit(text)
        good = (
            parts.scheme in {"http", "https", "ssh", "file"}
            and parts.path.startswith("/")
            and parts.path != "/"
        )
        password = parts.password
    except ValueError:
        raise _expected(what, text) from None
    if password is not None or ("@" in parts.netloc and parts.scheme != "ssh"):
        message = "a login may not stand in a recipe: git has its own ways to log in"
        raise ValueError(message)
    if not good or bool(parts.hostname) == (parts.scheme == "file") or re.search(r"\s", text):
        raise _expected(what, text)
    return text.rstrip("/")


def git_ref(text: str) -> str:
    """Check the name of a git tag."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}", text) or ".." in text:
        what = 'a tag such as "v2.4.0"'
        raise _expected(what, text)
    return text


def git_commit(text: str) -> str:
    """Check a commit, in full; a shortened one names another commit some day."""
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text.lower()):
        what = "a commit in full, 40 (or 64) hexadecimal digits"
        raise _expected(what, text)
    return text.lower()


def sha256(text: str) -> str:
    """Check a SHA-256 as hexadecimal digits."""
    digits = text.lower().removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        what = "a SHA-256, 64 hexadecimal digits"
        raise _expected(what, text)
    return digits
