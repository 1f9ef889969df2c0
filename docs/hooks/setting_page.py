"""The table of settings, from what the configuration knows, and the variables that there are."""

from collections.abc import Mapping

from envbuild.config.keys import KEYS

_FLAGS = ("ENVBUILD_LOCKED", "ENVBUILD_FROZEN")


def variables() -> frozenset[str]:
    """Return the names of our own variables."""
    names = (name for key in KEYS for name in (key.variable, *key.also))
    return frozenset({*_FLAGS, *(name for name in names if name.startswith("ENVBUILD_"))})


def table(options: Mapping[str, str]) -> str:
    """Return the table in Markdown.

    Args:
        options: The option that says the same as a variable, by the variable.
    """
    rows = ["| setting | what it sets | default | variable | option |", "| --- " * 5 + "|"]
    for key in KEYS:
        names = ", ".join(f"`{name}`" for name in (key.variable, *key.also))
        option = options.get(key.variable)
        shown = f"`{option}`" if option else ""
        rows.append(f"| `{key.name}` | {key.about} | {key.default} | {names} | {shown} |")
    return "\n".join(rows)
