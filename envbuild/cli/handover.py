"""What a program that replaces this process gets."""

from envbuild.cli import output
from envbuild.cli.context import Here
from envbuild.store.use import Activation


def environment(here: Here) -> dict[str, str]:
    """Return the environment as this process was given it.

    Where no locale is set, Python adds `LC_CTYPE` for the programs it starts (PEP 538); the
    kernel still shows what was there at the start (proc(5)).
    """
    result = dict(here.environment)
    if result.get("LC_CTYPE") == "C.UTF-8":
        try:
            with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - start-up time
                given = file.read().split(b"\0")
        except OSError:
            return result
        if b"LC_CTYPE=C.UTF-8" not in given:
            del result["LC_CTYPE"]
    return result


def tell_cleared(here: Here, activation: Activation) -> None:
    """Say with -v which variables of the caller a program does not get: they are another Python's.

    Their values are not shown.
    """
    for name in activation.environment.unset:
        if here.verbosity and name in here.environment:
            output.say(here, f"{name} is not handed on: it would mix another Python's modules in")


def warn(here: Here, activation: Activation) -> None:
    """Say so where other hosts cannot be told that this one uses a generation."""
    if activation.kept is not None and not activation.kept.said:
        hosts = activation.generation.place.store.hosts
        output.say(
            here, f"warning: {hosts} cannot be written: other hosts may remove what is used here"
        )
