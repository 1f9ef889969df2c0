"""Findings that a recipe lets through."""

from dataclasses import replace
from datetime import date

import pytest

from envbuild.findings import Finding, Severity
from envbuild.pipeline.allow import judge, lines, once
from envbuild.recipe.load import LoadedRecipe, loads

TODAY = date(2026, 12, 1)


def recipe(*entries: str) -> LoadedRecipe:
    rows = "".join(f"  - {{reason: because, {entry}}}\n" for entry in entries)
    return loads(f"name: r\nallow:\n{rows}" if rows else "name: r\n", source="recipes/r.yaml")


def finding(code: str = "weak", where: str = "linux-64") -> Finding:
    return Finding(code=code, severity=Severity.ERROR, where=where, what="it is")


def seen(*findings: Finding, loaded: LoadedRecipe) -> list[tuple[str, str]]:
    return [(one.code, one.severity.value) for one in judge(findings, loaded, today=TODAY)]


def test_nothing_is_let_through_by_itself() -> None:
    assert seen(finding(), loaded=recipe()) == [("weak", "error")]


def test_each_finding_once() -> None:
    assert seen(finding(), finding(), loaded=recipe()) == [("weak", "error")]


def test_a_code_is_let_through_on_its_last_day() -> None:
    loaded = recipe("code: weak, until: 2026-12-01")
    assert seen(finding(), finding("other"), loaded=loaded) == [
        ("weak", "note"),
        ("other", "error"),
    ]


def test_where_narrows_it() -> None:
    loaded = recipe("code: weak, until: 2027-01-01, where: linux-64")
    found = seen(finding(), finding(where="linux-aarch64"), loaded=loaded)
    assert found == [("weak", "note"), ("weak", "error")]


@pytest.mark.parametrize(
    ("asked", "found", "severity"),
    [
        ("pypi:Zope.Interface", "pypi:zope-interface", "note"),
        ("pypi:ruamel_yaml: a.b/c_d.py", "pypi:ruamel-yaml: a.b/c_d.py", "note"),
        ("pypi:ruamel-yaml: a-b/c_d.py", "pypi:ruamel-yaml: a.b/c_d.py", "error"),
        ("pypi:zope-interface", "pypi:zope-interface-extra", "error"),
        ("conda:ruamel_yaml", "conda:ruamel.yaml", "error"),  # conda's are two packages
    ],
)
def test_a_wheel_is_meant_however_its_name_is_spelled(
    asked: str, found: str, severity: str
) -> None:
    loaded = recipe(f'code: weak, until: 2027-01-01, where: "{asked}"')
    assert seen(finding(where=found), loaded=loaded) == [("weak", severity)]


def test_an_entry_whose_day_has_passed_is_a_finding() -> None:
    loaded = recipe("code: x, until: 2027-01-01", "code: weak, until: 2026-11-30")
    found = judge((finding(),), loaded, today=TODAY)
    assert [one.code for one in found] == ["weak", "allow-expired"]
    assert found[0].severity is Severity.ERROR
    assert found[1].where == "recipes/r.yaml:4:5"
    assert "ended on 2026-11-30" in found[1].what
    assert found[1].why == "because"


def test_codes_of_one_run_are_let_through_today_only() -> None:
    loaded = once(recipe(), ("weak",), today=TODAY)
    (found,) = judge((finding(),), loaded, today=TODAY)
    assert found.severity is Severity.NOTE
    assert "--allow, this once" in found.why
    assert once(loaded, (), today=TODAY) is loaded
    assert seen(finding("other"), loaded=loaded) == [("other", "error")]


def test_lines_of_an_error() -> None:
    text = lines((finding(), replace(finding("other"), hint="do this")))
    assert text == "linux-64: it is [weak]\nlinux-64: it is [other]\n  hint: do this"
