"""What shells are told: the text that activates a generation, and how a shell is started in it."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from envbuild.store.environment import Environment
from envbuild.store.use import Activation

INSIDE = "ENVBUILD_SHELL"
"""Variable that holds the name of the environment whose `envbuild shell` this is."""

_SAVED = "_ENVBUILD_OLD_"


def activation_text(activation: Activation) -> str:
    """Return what activates a generation in bash and zsh, and defines what undoes it.

    The text holds under `set -euo pipefail`. `envbuild_deactivate` (and `deactivate`, where there
    is none yet) puts every variable back as it was. An environment that is active is left first.
    """
    name, environment = activation.generation.place.name, activation.environment
    names = sorted({*environment.set, *environment.prepend, *environment.unset})
    return "\n".join(
        (
            f"# envbuild: {name}, generation {activation.generation.identifier}",
            "if typeset -f envbuild_deactivate >/dev/null 2>&1; then envbuild_deactivate; fi",
            *(_save(variable) for variable in (*names, "PS1")),
            *_changes(activation.environment),
            *_prompt(name),
            "envbuild_deactivate() {",
            *(f"  {_restore(variable)}" for variable in names),
            f"  {_restore('PS1', export=False)}",
            '  case "$(typeset -f deactivate 2>/dev/null)" in',
            "    *envbuild_deactivate*) unset -f deactivate ;;",
            "  esac",
            "  unset -f envbuild_deactivate",
            "  hash -r 2>/dev/null || true",
            "}",
            "if ! typeset -f deactivate >/dev/null 2>&1; then",
            "  deactivate() { envbuild_deactivate; }",
            "fi",
            "hash -r 2>/dev/null || true",
            "",
        )
    )


def bash_start(activation: Activation, descriptor: int) -> str:
    """Return what an interactive bash reads at its start, instead of the user's own file.

    Args:
        activation: What it sets.
        descriptor: The file descriptor that this text is read from; it is closed at the end.
    """
    lines = (
        'if [ -r "$HOME/.bashrc" ]; then . "$HOME/.bashrc"; fi',
        *_changes(activation.environment),
        *_prompt(activation.generation.place.name),
        f"exec {descriptor}<&-",
        "",
    )
    return "\n".join(lines)


def write_zsh_start(activation: Activation, folder: Path, dotdir: str | None) -> None:
    """Write the files that an interactive zsh reads at its start; it removes the folder itself.

    Args:
        activation: What it sets.
        folder: An empty folder, which `ZDOTDIR` has to name.
        dotdir: The user's own `ZDOTDIR`, or None.
    """
    own = 'ZDOTDIR="$HOME"' if dotdir is None else f"ZDOTDIR={shlex.quote(dotdir)}"
    after = "unset ZDOTDIR" if dotdir is None else f"export {own}"
    here = shlex.quote(str(folder))
    environment = (
        own,
        'if [ -r "$ZDOTDIR/.zshenv" ]; then . "$ZDOTDIR/.zshenv"; fi',
        f"ZDOTDIR={here}",
        "",
    )
    start = (
        own,
        'if [ -r "$ZDOTDIR/.zshrc" ]; then . "$ZDOTDIR/.zshrc"; fi',
        after,
        *_changes(activation.environment),
        *_prompt(activation.generation.place.name),
        f"rm -rf -- {here}",
        "",
    )
    (folder / ".zshenv").write_text("\n".join(environment))
    (folder / ".zshrc").write_text("\n".join(start))


def _changes(environment: Environment) -> Iterator[str]:
    """Yield the lines that set, prepend to and remove variables."""
    for variable in environment.unset:
        yield f"unset {variable}"
    for variable, value in environment.set.items():
        yield f"export {variable}={shlex.quote(value)}"
    for variable, folders in environment.prepend.items():
        joined = shlex.quote(":".join(folders))
        yield f'export {variable}={joined}"${{{variable}:+:${variable}}}"'


def _prompt(name: str) -> Iterator[str]:
    yield f'if [ -n "${{PS1+x}}" ]; then PS1="({name}) $PS1"; fi'


def _save(variable: str) -> str:
    saved = f"{_SAVED}{variable}"
    return (
        f'if [ -n "${{{variable}+x}}" ]; then {saved}="${variable}"; '
        f"else unset {saved} 2>/dev/null || true; fi"
    )


def _restore(variable: str, *, export: bool = True) -> str:
    saved = f"{_SAVED}{variable}"
    word = "export " if export else ""
    return (
        f'if [ -n "${{{saved}+x}}" ]; then {word}{variable}="${saved}"; unset {saved}; '
        f"else unset {variable}; fi"
    )
