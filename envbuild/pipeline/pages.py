"""The pages about findings and exit codes: written once, for the site and for `envbuild explain`.

A page is Markdown below a head: `key: value` lines between two lines of `---`.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_PAGES = Path(__file__).parents[1] / "pages"
FINDINGS = _PAGES / "findings"
ERRORS = _PAGES / "errors"
STAGES = {
    "facts": "envbuild check",
    "moving over": "envbuild new --from",
    "locking": "envbuild lock",
    "answers": "envbuild lock --check",
    "creating": "envbuild create",
    "services": "envbuild units",
    "status": "envbuild status",
    "verifying": "envbuild verify",
    "self": "envbuild self check",
    "host": "envbuild doctor",
    "inspecting": "envbuild inspect",
    "rebuilding": "envbuild wheel rebuild",
}
"""The command that finds it, by the name that a page's head has."""
_HEAD = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_FENCE = re.compile(r"^```")


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingPage:
    """A page about a finding.

    Attributes:
        code: The finding's code, which is the file's name.
        stages: Where it is found, keys of `STAGES`.
        severity: Severities in words.
        seen: What was seen, one line.
        body: What follows.
    """

    code: str
    stages: tuple[str, ...]
    severity: str
    seen: str
    body: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorPage:
    """A page about an exit code.

    Attributes:
        code: The exit code, which is the file's name.
        means: What it means, one line.
        kinds: Names of the error classes that have it, as `--json` says them.
        body: What follows.
    """

    code: int
    means: str
    kinds: tuple[str, ...]
    body: str


def codes(folder: Path) -> tuple[str, ...]:
    """Return the codes that a folder has pages for, sorted."""
    return tuple(sorted(path.stem for path in folder.glob("*.md") if path.stem != "index"))


def finding(path: Path) -> FindingPage:
    """Read a page about a finding.

    Raises:
        ValueError: Its head is not as it should be.
    """
    head, body = _read(path, ("stage", "severity", "seen"))
    stages = tuple(stage.strip() for stage in head["stage"].split(","))
    if not {*stages} <= {*STAGES}:
        message = f"{path}: a stage is one of {', '.join(STAGES)}"
        raise ValueError(message)
    return FindingPage(
        code=path.stem, stages=stages, severity=head["severity"], seen=head["seen"], body=body
    )


def error(path: Path) -> ErrorPage:
    """Read a page about an exit code.

    Raises:
        ValueError: Its head is not as it should be.
    """
    head, body = _read(path, ("means", "kinds"))
    kinds = tuple(kind.strip() for kind in head["kinds"].split(",") if kind.strip())
    return ErrorPage(code=int(path.stem), means=head["means"], kinds=kinds, body=body)


def plain(markdown: str) -> str:
    """Return a page's Markdown as a terminal shows it: no title, code indented, links as words."""
    lines: list[str] = []
    within = False
    for line in markdown.strip().splitlines():
        if _FENCE.match(line):
            within = not within
        elif within:
            lines.append(f"    {line}".rstrip())
        elif line.startswith("## "):
            lines.append(f"{line[3:]}:")
        elif not line.startswith("# "):
            lines.append(_LINK.sub(r"\1", line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _read(path: Path, keys: Collection[str]) -> tuple[dict[str, str], str]:
    """Return what a page's head says, and the text below it."""
    text = path.read_text(encoding="utf-8")
    found = _HEAD.match(text)
    parts = (line.partition(":") for line in (found[1].splitlines() if found else ()))
    head = {key: value.strip().strip('"') for key, _, value in parts}
    if found is None or head.keys() != set(keys):
        message = f"{path}: the head between two lines of --- has to say {', '.join(keys)}"
        raise ValueError(message)
    return head, text[found.end() :]
