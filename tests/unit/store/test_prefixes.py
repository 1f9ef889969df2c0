import pytest

from envbuild.store.prefixes import Exchange

OLD = "/srv/old/envs/x/generations/0123456789abcdef"
SHORT = "/s"
LONG = f"/srv/{'long/' * 24}x"
SPACE = "/srv/a store/x"


def test_the_next_generation_s_path_is_another_one() -> None:
    exchange = Exchange(old=OLD, new=SHORT)
    text = f"{OLD}/lib {OLD}-2/lib {OLD}-x {OLD}".encode()
    assert exchange.in_text(text) == f"/s/lib {OLD}-2/lib /s-x /s".encode()
    assert not exchange.finds(f"{OLD}-2/lib".encode())


def test_a_new_path_that_holds_the_old_one_is_put_in_once() -> None:
    assert Exchange(old="/a", new="/a/a").in_text(b"/a:/a") == b"/a/a:/a/a"


@pytest.mark.parametrize(
    ("new", "first", "wanted"),
    [
        (SHORT, f"#!{OLD}/bin/python -E", "#!/s/bin/python -E"),
        (SHORT, f"#!/usr/bin/env {OLD}/bin/perl", "#!/usr/bin/env /s/bin/perl"),
        (SHORT, "#!/bin/sh", "#!/bin/sh"),
        (LONG, f"#!{OLD}/bin/python3.11", f"#!/bin/sh\n'''exec' \"{LONG}/bin/python3.11\" \"$0\""),
        (SPACE, f"#!{OLD}/bin/python -E", f"#!/bin/sh\n'''exec' \"{SPACE}/bin/python\" -E \"$0\""),
        (
            SPACE,
            f"#!/bin/sh\n'''exec' {OLD}/bin/python \"$0\"",
            f"#!/bin/sh\n'''exec' \"{SPACE}/bin/python\" \"$0\"",
        ),
        (
            SPACE,
            f"#!/bin/sh\n'''exec' '{OLD}/bin/python' \"$0\"",
            f"#!/bin/sh\n'''exec' '{SPACE}/bin/python' \"$0\"",
        ),
        (
            SHORT,
            f"#!/bin/sh\n'''exec' \"{OLD}/bin/python\" \"$0\"",
            "#!/bin/sh\n'''exec' \"/s/bin/python\" \"$0\"",
        ),
    ],
)
def test_the_first_line_of_a_script(new: str, first: str, wanted: str) -> None:
    content = f"{first} \"$@\" #'''\nprint('{OLD}')\n" if "exec" in first else f"{first}\n{OLD}\n"
    changed = Exchange(old=OLD, new=new).in_script(content.encode()).decode()
    assert changed.startswith(wanted)
    assert OLD not in changed
    assert changed.endswith((f"{new}\n", f"print('{new}')\n"))


@pytest.mark.parametrize("new", [LONG, SPACE])
def test_only_a_python_can_be_started_by_a_shell(new: str) -> None:
    with pytest.raises(ValueError, match="first line"):
        Exchange(old=OLD, new=new).in_script(f"#!{OLD}/bin/perl -w\n".encode())


def test_a_binary_keeps_its_size_and_what_follows() -> None:
    room = 60
    content = b"\1" + OLD.encode() + b"/lib" + bytes(room - len(OLD) + 1) + b"end"
    there = Exchange(old=OLD, new="/n" * 30)
    longer = there.in_binary(content, room)
    assert longer == b"\1" + b"/n" * 30 + b"/lib\0end"
    back = Exchange(old="/n" * 30, new=OLD).in_binary(longer, room)
    assert back == content
    assert len(Exchange(old=OLD, new=SHORT).in_binary(content, room)) == len(content)


def test_several_paths_in_one_string_share_its_padding() -> None:
    text = f"{OLD}/a:{OLD}/b".encode()
    content = text + bytes(2 * 10 + 1) + b"end"
    new = OLD + "/123456789"
    changed = Exchange(old=OLD, new=new).in_binary(content, len(OLD) + 10)
    assert changed == f"{new}/a:{new}/b".encode() + b"\0end"


@pytest.mark.parametrize(
    "content",
    [
        OLD.encode() + b"\0end",
        OLD.encode() + b"\0\0\0end",
        OLD.encode(),
        OLD.encode() + bytes(3) + b"e" + bytes(20),
    ],
)
def test_without_room_a_binary_is_refused(content: bytes) -> None:
    exchange = Exchange(old=OLD, new=f"{OLD}/long")
    with pytest.raises(ValueError, match=f"{len(OLD) + 5} bytes, there is room for"):
        exchange.in_binary(content, 255)
    with pytest.raises(ValueError, match=f"room for {len(OLD)}"):
        exchange.in_binary(OLD.encode() + bytes(50), 0)
