"""The pages of `docs/findings/`: what their heads say, the tables, the part about `allow`."""

from collections.abc import Iterable
from pathlib import Path

from envbuild.pipeline import pages
from envbuild.pipeline.pages import FindingPage

_TITLES = {
    "facts": "Against what is known",
    "moving over": "Taking over an environment",
    "locking": "Locking",
    "answers": "Does the lock answer the recipe?",
    "creating": "Creating",
    "services": "Services",
    "inspecting": "Reading binaries",
    "rebuilding": "Rebuilding wheels",
    "status": "Status",
    "verifying": "Verifying",
    "self": "Checking the installation",
    "host": "This host, and an environment on it",
}
_ALLOW = {
    "facts": "In `envbuild check` and `envbuild lock`:",
    "locking": "In `envbuild lock`, and in a `create` that has to lock first:",
    "answers": "In `envbuild lock --check` only; `create` refuses such a lock all the same "
    "(unless with `--frozen`, which does not look).",
    "creating": "In `envbuild create`:",
    "services": "In `envbuild units`:",
}
_NEVER = {
    "allow-expired": "It is about `allow` itself, and cannot be let through.",
    "in-both-halves": "It cannot be let through: the result would be broken.",
}
_NOT_ALLOWED = "`{}` takes no notice of a recipe's `allow`: it tells what is there."
_ENTRY = """```yaml
allow:
  - code: {code}
    reason: why it does no harm here
    until: 2027-03-31       # the last day on which it is let through (UTC)
    where: …                # optional: only this place, as the finding names it
```"""


def read(folder: Path) -> tuple[FindingPage, ...]:
    """Read every page of a folder but its index, by code."""
    return tuple(pages.finding(folder / f"{code}.md") for code in pages.codes(folder))


def with_tables(markdown: str, found: Iterable[FindingPage]) -> str:
    """Put a table per stage in the place of `<!-- tables -->`."""
    parts = []
    for stage, title in _TITLES.items():
        rows = [
            f"| [`{page.code}`]({page.code}.md) | {page.severity} | {page.seen} |"
            for page in found
            if stage in page.stages
        ]
        heading = [f"## {title}", "", "| code | severity | what was seen |", "| --- | --- | --- |"]
        parts.append("\n".join([*heading, *rows]))
    return markdown.replace("<!-- tables -->", "\n\n".join(parts))


def with_allow(markdown: str, page: FindingPage) -> str:
    """Say at a page's end how the finding is let through, or that it cannot be."""
    lines = ["## How to allow it", ""]
    if page.code in _NEVER:
        return _completed(markdown, page, [*lines, _NEVER[page.code]])
    lines += [_ALLOW[stage] for stage in page.stages if stage in _ALLOW]
    if any(stage in _ALLOW for stage in page.stages):
        lines += ["", _ENTRY.format(code=page.code), ""]
    lines += [
        _NOT_ALLOWED.format(pages.STAGES[stage]) for stage in page.stages if stage not in _ALLOW
    ]
    return _completed(markdown, page, lines)


def _completed(markdown: str, page: FindingPage, lines: list[str]) -> str:
    """Put severity and stage below a page's title, and lines at its end."""
    severity = f"**{page.severity[0].upper()}{page.severity[1:]}**"
    commands = " and ".join(f"`{pages.STAGES[stage]}`" for stage in page.stages)
    title, _, rest = markdown.lstrip().partition("\n")
    return f"{title}\n\n{severity}, from {commands}.\n{rest}\n" + "\n".join(lines) + "\n"
