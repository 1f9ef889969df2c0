"""Work in another thread is waited for, also by who was interrupted while waiting."""

import signal
import threading

import pytest

from envbuild.tools.aside import Aside


def test_what_is_waited_for_by_an_interrupted_thread_has_ended_afterwards() -> None:
    interrupted, ended = threading.Event(), threading.Event()

    def work() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        interrupted.wait(5)
        ended.set()

    def interrupted_there() -> None:
        aside.start()
        aside.result()

    aside = Aside(work)
    with pytest.raises(KeyboardInterrupt):
        interrupted_there()
    threading.Timer(0.2, interrupted.set).start()
    aside.end()
    assert ended.is_set()


def test_what_did_not_begin_never_does() -> None:
    began = threading.Event()
    aside = Aside(began.set)
    aside.end()
    aside.start()
    assert not began.wait(0.2)


def test_an_error_of_the_other_thread_is_raised_where_it_is_waited_for() -> None:
    def work() -> None:
        message = "full"
        raise OSError(message)

    aside = Aside(work)
    aside.start()
    with pytest.raises(OSError, match="full"):
        aside.result()
    aside.end()
