"""An interrupt waits for the end of a piece of work, and comes at once outside of it."""

import threading

import pytest

from envbuild.tools.interrupts import Piece, gap, interrupt


def test_outside_of_a_piece_it_comes_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_it_comes_at_the_end_of_the_outermost_piece() -> None:
    done = []

    def work() -> None:
        with Piece():
            with Piece():
                interrupt()
                done.append("inner")
            done.append("outer")
        done.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]
    with Piece():  # it came once
        done.append("next")


def test_it_comes_also_where_the_piece_fails() -> None:
    def work() -> None:
        with Piece():
            interrupt()
            message = "full"
            raise OSError(message)

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert isinstance(caught.value.__context__, OSError)


def test_a_piece_that_waits_lets_it_through() -> None:
    done = []

    def waiting() -> None:
        with Piece():
            interrupt()
            with gap():
                done.append("waited")

    def interrupted() -> None:
        with Piece(), gap():
            interrupt()
            done.append("went on")

    for work in (waiting, interrupted):
        with pytest.raises(KeyboardInterrupt):
            work()
    assert done == []
    with Piece():  # nothing of them is left
        done.append("next")
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_a_piece_of_another_thread_holds_nothing_back() -> None:
    inside, over = threading.Event(), threading.Event()

    def work() -> None:
        with Piece(), gap():
            inside.set()
            over.wait(5)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(5)
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    over.set()
    thread.join()
