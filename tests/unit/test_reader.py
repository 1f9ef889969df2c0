"""Reading YAML as text with places: what is taken, what is refused, and hostile input."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envbuild.document import Mark, Problem, field_name, refusal
from envbuild.errors import InputError
from envbuild.reader import MAX_DEPTH, decode, read, scan


def problem_of(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text, source="x.yaml")
    return "\n".join([caught.value.message, *caught.value.problems])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("python: 3.10", {"python": "3.10"}),
        (
            "a: no\nb: 0x10\nc: 2026-01-01\nd: ~\ne: null\nf: 1_000",
            {"a": "no", "b": "0x10", "c": "2026-01-01", "d": "~", "e": "null", "f": "1_000"},
        ),
        ("a:\nb: ''\nc: ", {"b": ""}),
        ("\ufeffa: b\r\nc:\r\n  - d\r\n", {"a": "b", "c": ["d"]}),
        ("a:\tb\t# c\nd: e\t\nf:\n-\tg\n- {\th:\ti}", {"a": "b", "d": "e", "f": ["g", {"h": "i"}]}),
        ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", {"a": "x\ny\n", "b": "x y"}),
        ("x: &a {p: 1, q: 2}\ny: *a", {"x": {"p": "1", "q": "2"}, "y": {"p": "1", "q": "2"}}),
        (
            "x: &a {p: 1, q: 2}\nz: &b {q: 3, r: 4}\ny: {r: 5, <<: [*a, *b]}",
            {
                "x": {"p": "1", "q": "2"},
                "z": {"q": "3", "r": "4"},
                "y": {"r": "5", "p": "1", "q": "2"},
            },
        ),
        ("x: &a {p: 1}\ny: {<<: *a, p: }", {"x": {"p": "1"}, "y": {}}),
        ('"<<": a', {"<<": "a"}),
        ("--- # c\n- a\n- [b, {c: d}]\n...\n", ["a", ["b", {"c": "d"}]]),
        ("just text", "just text"),
        ("%YAML 1.2\n---\na: yes", {"a": "yes"}),
    ],
)
def test_every_scalar_is_text(text: str, value: object) -> None:
    assert read(text, source="x.yaml").value == value


def test_marks_of_keys_and_values() -> None:
    document = read("a: 1\nb:\n  - x\n  - {c: d}\n", source="x.yaml")
    marks = {path: (mark.line, mark.column) for path, mark in document.marks.items()}
    assert marks == {
        (): (1, 1),
        ("a",): (1, 4),
        ("b",): (3, 3),
        ("b", 0): (3, 5),
        ("b", 1): (4, 5),
        ("b", 1, "c"): (4, 9),
    }
    keys = {path: (mark.line, mark.column) for path, mark in document.keys.items()}
    assert keys == {("a",): (1, 1), ("b",): (2, 1), ("b", 1, "c"): (4, 6)}
    assert str(document.marks["b", 1, "c"]) == "x.yaml:4:9"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "x.yaml:1:1: the file is empty"),
        ("# only a comment\n---\n", "x.yaml:1:1: the file is empty"),
        ("a: 1\nb: 2\na: 3", "x.yaml:3:1: a: the key stands twice: first on line 1 (x.yaml:1:1)"),
        ("a: b\n\tc: d", "x.yaml:2:1: not YAML: a tab may not indent; use spaces"),
        ("a: b: c", "x.yaml:1:5: not YAML: mapping values are not allowed here"),
        ("a: [1,\n", "x.yaml:2:1: not YAML: "),
        ('a: "x', "x.yaml:1:6: not YAML: found unexpected end of stream (while scanning"),
        ("a: @x", "x.yaml:1:4: not YAML: found character '@'"),
        ("a: b\n---\nc: d", "x.yaml:2:1: a second document begins here; only one is read"),
        ("a: !!str 3", "x.yaml:1:4: a: a tag (tag:yaml.org,2002:str) is not read"),
        ("a: !!python/object:os.system [x]", "x.yaml:1:4: a: a tag (tag:yaml.org,2002:python"),
        ("a: !secret x", "x.yaml:1:4: a: a tag (!secret) is not read"),
        ("a: *b", "x.yaml:1:4: a: no anchor &b stands before this alias"),
        ("- *b", "x.yaml:1:3: [0]: no anchor &b stands before this alias"),
        ("a: &a [*a]", "x.yaml:1:8: a[0]: the alias *a contains itself"),
        ("- a\n-\n- b", "x.yaml:2:2: [1]: is an empty item"),
        ("? [a]\n: b", "x.yaml:1:3: a key must be text"),
        (": b", "x.yaml:1:1: a key is missing before the colon"),
        ("a: {<<: text}", "x.yaml:1:9: a.<<: behind << stands a mapping, or a list of mappings"),
        ("a: b\n\x01", "x.yaml:2:1: not YAML: the character U+0001 may not stand in a text file"),
        ("%YAML 9.9\n---\na: b", "x.yaml:1:1: not YAML"),
    ],
)
def test_refused(text: str, expected: str) -> None:
    assert expected in problem_of(text)


def test_all_problems_at_once_in_line_order() -> None:
    error = problem_of("b: !x y\na: 1\na: 2\nc: [*d,\n")
    assert re.findall(r"x\.yaml:(\d+):", error.replace("(x.yaml:2:1)", "")) == ["1", "3", "4", "5"]
    assert error.startswith("x.yaml: 4 problems\n")


def test_scan_keeps_what_does_not_prevent_reading() -> None:
    document = scan("a: 1\na: 2\nb: *c\n", source="x.yaml")
    assert document.value == {"a": "1"}
    assert [problem.path for problem in document.problems] == [("a",), ("b",)]


def test_nesting_is_bounded() -> None:
    assert "nested more than" in problem_of("[" * 100_000)
    assert "nested more than" in problem_of(
        "".join(f"{' ' * n}a:\n" for n in range(400)) + " " * 400
    )
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read(deep, source="x.yaml").value


def test_aliases_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    start = time.monotonic()
    assert "too large, with its aliases written out" in problem_of("\n".join(lines))
    assert time.monotonic() - start < 5


def test_one_long_text_with_many_aliases_is_bounded() -> None:
    text = f"a: &a {'x' * 400_000}\nb: [{', '.join(['*a'] * 20_000)}]"
    assert "too large, with its aliases written out" in problem_of(text)


def test_merge_keys_are_bounded() -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: v" for n in range(100)) + "}"]
    lines += [f"a{n}: &a{n} {{x: [*a{n - 1}, *a{n - 1}], <<: *a{n - 1}}}" for n in range(1, 30)]
    assert "too large" in problem_of("\n".join(lines))


def test_size_is_bounded() -> None:
    assert "too large: more than 1,000,000 characters" in problem_of("a: " + "x" * 1_000_001)
    assert "a key is longer than 250 characters" in problem_of("x" * 300 + ": a")


def test_decode_says_where() -> None:
    assert decode(b"\xef\xbb\xbfa: \xc3\xa4", source="x") == "\ufeffa: ä"
    with pytest.raises(InputError) as caught:
        decode("a: ä\nb: ö".encode() + b"\xff", source="x.yaml")
    assert caught.value.message == "x.yaml:2:5: not UTF-8 text: byte 0xff"
    with pytest.raises(InputError):
        decode(b"\x7fELF\x02\x01\x01\x00\x80\xff", source="x.yaml")


def test_field_names_and_long_problems() -> None:
    assert field_name(("gpu", "archs", 1, "x")) == "gpu.archs[1].x"
    mark = Mark(source="x", line=1, column=1)
    assert len(str(Problem(mark=mark, what="y" * 10_000))) < 600


def test_refusal_lists_own_file_first_and_nothing_twice() -> None:
    def problem(source: str, line: int) -> Problem:
        return Problem(mark=Mark(source=source, line=line, column=1), what="bad")

    problems = (problem("a", 1), problem("b", 9), problem("b", 2), problem("b", 2))
    error = refusal(problems, source="b", hint="mend it")
    assert error.problems == ("b:2:1: bad", "b:9:1: bad", "a:1:1: bad")
    assert (error.where, error.hint, error.exit_code) == ("2:1", "mend it", 3)


values = st.recursive(
    st.text(
        st.characters(
            codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"], max_codepoint=0xD7FF
        ),
        min_size=1,
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcdef<", min_size=1, max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


def as_yaml(value: object) -> str:
    """Write a value as flow YAML with quoted scalars."""
    if isinstance(value, list):
        return "[" + ", ".join(map(as_yaml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_yaml(k)}: {as_yaml(v)}" for k, v in value.items()) + "}"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\ufeff", "\\uFEFF")
    return f'"{text}"'


@settings(max_examples=60, deadline=None)
@given(values)
def test_what_is_written_is_read(value: object) -> None:
    assert read(as_yaml(value), source="x.yaml").value == value


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from(":-[]{}&*!|>'\"%@#,? \n\t<ab0\\\u2028\x85"), max_size=40))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    refused, lines = "", []
    try:
        document = scan(text, source="x.yaml")
        lines = [mark.line for mark in document.marks.values()]
    except InputError as error:
        refused = error.message
    assert re.match(r"x\.yaml(:\d+:\d+)?: ", refused) if refused else lines
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)
