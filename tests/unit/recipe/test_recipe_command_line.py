"""Splitting command lines; that it is systemd's way is tested with systemd."""

import pytest

from envbuild.recipe.command_line import split


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        (" a  b\tc ", ("a", "b", "c")),
        ("a\"b c\"'d e'f", ("ab cd ef",)),
        (r"\x41\101\u00e9 \s \"", ("AAé", " ", '"')),
        (r"'a\'b' '\\'", ("a'b", "\\")),
        ("$HOME ${X} 100% ; # *", ("$HOME", "${X}", "100%", ";", "#", "*")),
        ("'' \"\"", ("", "")),
    ],
)
def test_words(text: str, words: tuple[str, ...]) -> None:
    assert split(text) == words


@pytest.mark.parametrize("text", ["'a", '"a', "a\\", r"\q", r"\x0", r"\000", r"\x80", r"\ud800"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"a quote is not closed|no escape"):
        split(text)
