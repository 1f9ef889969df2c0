"""`envbuild explain`: what is known about a topic, a code, a package or a card, with sources."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from textwrap import fill
from typing import TYPE_CHECKING

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.errors import UsageProblem

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from envbuild.compat.explain import Explained
    from envbuild.compat.model import Facts
    from envbuild.pipeline.pages import ErrorPage, FindingPage

_EXIT = re.compile(r"(?:exit[ -]?(?:code[ -]?)?)?(\d{1,3})")
_TITLES = {
    "package": "Packages",
    "topic": "Topics",
    "card": "Cards",
    "driver": "Driver branches",
    "claim": "What people say",
    "known-bad": "What is known to fail",
    "xid": "Xids of the kernel's log",
    "finding": "Findings",
    "exit code": "Exit codes",
}
_WIDTH = 88


def _offered(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    here = ctx.ensure_object(Here)
    told = ctx.params.get("words") or ()
    names = {} if told else _names(here.facts)
    return [
        CompletionItem(name, help=kind)
        for name, kind in names.items()
        if name.startswith(incomplete) and " " not in name
    ]


@options.command(
    "explain",
    examples="""
    envbuild explain
    envbuild explain no-gpu-code
    envbuild explain pytorch 2.4.0
    envbuild explain "cudnn 9 cuda 12.4"
    envbuild explain h100 --json
    """,
)
@click.argument("words", metavar="[TOPIC|CODE|PACKAGE]…", nargs=-1, shell_complete=_offered)
@options.json_option
@click.pass_obj
def command(here: Here, words: tuple[str, ...], *, as_json: bool) -> None:
    """Tell what is known about a topic, a code, a package, a card or a driver.

    Each sentence has its source. A package may have a version (`pytorch 2.4.0`); words of what
    people say (`"torch.compile fp8"`) tell whether it is true. Without a word: what there is.
    """
    if not words:
        _list(here, as_json=as_json)
        return
    text = " ".join(words)
    page = _page(text.lower())
    if page is not None:
        _show_page(page, as_json=as_json)
        return
    from envbuild.compat.explain import explain

    facts = here.facts
    found = explain(facts, text)
    if found is None:
        raise _unknown(facts, text)
    if as_json:
        output.print_json(_json(found))
    else:
        output.result("\n".join(_lines(found)))


def _names(facts: "Facts") -> Mapping[str, str]:
    """Return everything that can be asked for, with its kind."""
    from envbuild.compat.explain import names
    from envbuild.pipeline import pages

    found = dict(names(facts))
    found |= dict.fromkeys(pages.codes(pages.FINDINGS), "finding")
    numbers = sorted(map(int, pages.codes(pages.ERRORS)))
    return found | {f"exit {number}": "exit code" for number in numbers}


def _list(here: Here, *, as_json: bool) -> None:
    names = _names(here.facts)
    if as_json:
        rows = [{"name": name, "kind": kind} for name, kind in names.items()]
        output.print_json({"names": rows})
        return
    parts = []
    for kind, title in _TITLES.items():
        there = ", ".join(name for name, of in names.items() if of == kind)
        parts.append(f"{click.style(title, bold=True)}\n{_indented(there)}")
    output.result("\n".join(parts))


def _page(text: str) -> "FindingPage | ErrorPage | None":
    """Return the page about a finding's code or an exit code, or None."""
    from envbuild.pipeline import pages

    code = _EXIT.fullmatch(text)
    if code and code[1] in pages.codes(pages.ERRORS):
        return pages.error(pages.ERRORS / f"{code[1]}.md")
    name = text.strip("[]")
    if name in pages.codes(pages.FINDINGS):
        return pages.finding(pages.FINDINGS / f"{name}.md")
    return None


def _show_page(page: "FindingPage | ErrorPage", *, as_json: bool) -> None:
    from envbuild.pipeline import pages

    text = pages.plain(page.body)
    if isinstance(page, pages.FindingPage):
        name, kind = page.code, "finding"
        commands = [pages.STAGES[stage] for stage in page.stages]
        more = {"severity": page.severity, "commands": commands}
        told = f"{page.severity[:1].upper()}{page.severity[1:]}, from {' and '.join(commands)}."
    else:
        name, kind, told = f"exit {page.code}", "exit code", f"{page.means}."
        more = {"means": page.means, "kinds": list(page.kinds)}
    if as_json:
        output.print_json({"name": name, "kind": kind, **more, "text": text})
    else:
        output.result(f"{click.style(name, bold=True)}\n{told}\n\n{text}")


def _lines(found: "Explained") -> Iterator[str]:
    yield click.style(found.name, bold=True)
    for statement in found.statements:
        yield ""
        yield fill(statement.text, _WIDTH, break_long_words=False, break_on_hyphens=False)
        doubt = "" if statement.confidence == "high" else f", confidence {statement.confidence}"
        sources = "; ".join(statement.sources)
        yield _indented(f"source: {sources} (read {statement.read}{doubt})")
    if found.see:
        yield ""
        typed = (
            each if each.startswith("envbuild ") else f"envbuild explain {each}"
            for each in found.see
        )
        yield from (f"see: {each}" for each in typed)


def _indented(text: str) -> str:
    return fill(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _json(found: "Explained") -> dict[str, object]:
    return {
        "name": found.name,
        "kind": found.kind,
        "statements": [
            {
                "text": each.text,
                "sources": list(each.sources),
                "read": each.read,
                "confidence": each.confidence,
            }
            for each in found.statements
        ],
        "see": list(found.see),
    }


def _unknown(facts: "Facts", text: str) -> UsageProblem:
    names = _names(facts)
    words = text.lower().split()
    found = _nearest_version(facts, words) or get_close_matches(text.lower(), names, n=1)
    if not found and words:
        found = get_close_matches(words[0], names, n=1)
    hint = f"did you mean {found[0]!r}?" if found else "see: envbuild explain"
    return UsageProblem(f"nothing is known about {text!r}", hint=hint)


def _nearest_version(facts: "Facts", words: Sequence[str]) -> list[str]:
    """Return what is known with the nearest version, where a version of something was asked for."""
    from envbuild.cli.sets import VERSION, nearest

    match words:
        case [("pytorch" | "torch" | "jax") as name, version]:
            framework = "jax" if name == "jax" else "pytorch"
            known = [row.version for row in facts.builds if row.framework == framework]
        case ["cuda" as name, version]:
            known = [row.version.rpartition(".")[0] for row in facts.toolkits]
        case ["cudnn" as name, version]:
            known = [row.version for row in facts.cudnns]
        case ["driver" as name, version]:
            known = [f"{row.branch}" for row in facts.branches]
        case _:
            return []
    return [f"{name} {nearest(version, known)}"] if VERSION.fullmatch(version) else []
