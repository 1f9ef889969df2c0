"""What activating a generation sets, computed once at creation and kept as data.

Activation scripts are shell code, so they are run, once, in a bash with an environment of ours;
what they changed becomes `environment.json`. No value of the builder's environment takes part.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from envbuild.errors import StoreError, ToolFailed
from envbuild.findings import Finding, Findings, Severity
from envbuild.store.environment import Environment, is_variable
from envbuild.tools import run as runner

_TIMEOUT_S = 120.0
_ACTIVATE = "etc/conda/activate.d"
_DEACTIVATE = "etc/conda/deactivate.d"
_MARK = "ENVBUILD-ACTIVATED"
_SCRIPT = f"""
for script in "$@"; do
  source "$script" || echo "$script: status $?" >&2
done >&2
printf '%s\\0' {_MARK}
exec env -0
"""
_IGNORED = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "BASH_ENV"})
_TRIPLETS = {"linux-64": "x86_64-conda-linux-gnu", "linux-aarch64": "aarch64-conda-linux-gnu"}


def compute(
    prefix: Path,
    *,
    name: str,
    platform: str,
    compiler: str | None,
    run: runner.Runner = runner.run,
    keep: Sequence[int] = (),
) -> tuple[Environment, Findings]:
    """Work out what activating a prefix sets, and what its scripts had to say about it.

    Codes: `activation-script-failed` (warning), `deactivation-script` (note).

    Args:
        prefix: The generation's prefix.
        name: The environment's name, for tools that show it.
        platform: conda subdir.
        compiler: The recipe's `build.compiler` (`gcc 12`), or None.
        run: How programs are started.
        keep: Descriptors that the scripts' shell inherits (the store's lock).

    Raises:
        StoreError: A file of variables in the prefix is damaged.
        ToolMissing: There are scripts to run and no bash.
        ToolFailed: The scripts ended the shell that ran them.
        ToolTimedOut: The scripts did not end.
    """
    base = {
        "CONDA_PREFIX": f"{prefix}",
        "CONDA_DEFAULT_ENV": name,
        "CONDA_PROMPT_MODIFIER": f"({name}) ",
        "CONDA_SHLVL": "1",
        **_compilers(prefix, platform, compiler),
    }
    scripts = sorted((prefix / _ACTIVATE).glob("*.sh"))
    changed, prepended, findings = _run_scripts(prefix, scripts, base, run=run, keep=keep)
    declared = _declared(prefix)
    environment = Environment(
        set={**base, **changed, **declared, **_compilers(prefix, platform, compiler)},
        prepend={**prepended, "PATH": _paths(prefix, prepended.get("PATH", ()))},
    )
    undone = sorted((prefix / _DEACTIVATE).glob("*.sh"))
    return environment, (*findings, *(_not_undone(script, prefix) for script in undone))


def _paths(prefix: Path, more: Sequence[str]) -> tuple[str, ...]:
    """Return what stands in front of PATH: what scripts put there, then the prefix's programs."""
    own = f"{prefix / 'bin'}"
    return (*(entry for entry in more if entry != own), own)


def _compilers(prefix: Path, platform: str, compiler: str | None) -> dict[str, str]:
    """Return CC, CXX and CUDAHOSTCXX for `gcc VERSION`: the prefix's own, else by name."""
    if compiler is None:
        return {}
    family, _, version = compiler.partition(" ")
    suffix = f"-{version.strip()}" if version.strip() else ""
    triplet = _TRIPLETS[platform]
    own = [prefix / "bin" / f"{triplet}-{tool}" for tool in ("gcc", "g++")]
    cxx_name = {"gcc": "g++", "clang": "clang++"}.get(family, family)
    if family == "gcc" and all(path.exists() for path in own):
        c_compiler, cxx = (f"{path}" for path in own)
    else:
        c_compiler, cxx = f"{family}{suffix}", f"{cxx_name}{suffix}"
    return {"CC": c_compiler, "CXX": cxx, "CUDAHOSTCXX": cxx}


def _run_scripts(
    prefix: Path,
    scripts: Sequence[Path],
    base: Mapping[str, str],
    *,
    run: runner.Runner,
    keep: Sequence[int],
) -> tuple[dict[str, str], dict[str, tuple[str, ...]], Findings]:
    if not scripts:
        return {}, {}, ()
    before = {**runner.base_environment(), **base}
    before["PATH"] = f"{prefix / 'bin'}:{before['PATH']}"
    argv = ["bash", "--noprofile", "--norc", "-c", _SCRIPT, "activate", *map(os.fspath, scripts)]
    done = run(argv, env=before, cwd=Path("/"), timeout_s=_TIMEOUT_S, keep=keep, check=False)
    _, found, text = done.stdout.partition(f"{_MARK}\0")
    if not found:
        names = ", ".join(os.path.relpath(script, prefix) for script in scripts)
        message = f"activation scripts ended their shell with status {done.status}: {names}"
        raise ToolFailed(message, argv=argv, status=done.status, details=done.stderr[-2000:])
    after = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
    changed, prepended = _difference(before, after)
    return changed, prepended, _complaints(done.stderr, prefix)


def _difference(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Return what scripts set, and what they put in front of (or at the end of) a list."""
    changed: dict[str, str] = {}
    prepended: dict[str, tuple[str, ...]] = {}
    for name, value in after.items():
        old = before.get(name)
        if name in _IGNORED or old == value or not is_variable(name):
            continue
        entries = _added(old, value, is_list=name == "PATH" or name.endswith("PATH"))
        if entries is None:
            changed[name] = value
        else:
            prepended[name] = entries
    return changed, prepended


def _added(old: str | None, new: str, *, is_list: bool) -> tuple[str, ...] | None:
    """Return the entries that were added to a list, or None where it is no such change.

    A list that a script begins (`export X_PATH=DIR:$X_PATH`, nothing before) ends with an empty
    entry, which would mean the current directory: only its other entries count.
    """
    if old is None:
        if is_list and (new.endswith(":") or new.startswith(":")):
            return tuple(entry for entry in new.split(":") if entry)
        return None
    if new.endswith(f":{old}"):
        return tuple(entry for entry in new[: -len(old) - 1].split(":") if entry)
    if new.startswith(f"{old}:"):
        return tuple(entry for entry in new[len(old) + 1 :].split(":") if entry)
    if is_list and f":{old}:" in new:
        return tuple(entry for entry in new.replace(f":{old}:", ":", 1).split(":") if entry)
    return None


def _complaints(stderr: str, prefix: Path) -> Findings:
    return tuple(
        Finding(
            code="activation-script-failed",
            severity=Severity.WARNING,
            where=match[1].removeprefix(f"{prefix}/"),
            what=f"it ended with status {match[2]} when it was run at creation",
            why="what it would have set may be missing",
        )
        for match in re.finditer(r"^(/.*): status ([0-9]+)$", stderr, re.MULTILINE)
    )


def _not_undone(script: Path, prefix: Path) -> Finding:
    return Finding(
        code="deactivation-script",
        severity=Severity.NOTE,
        where=f"{script.relative_to(prefix)}",
        what="it is not run: deactivating restores what activating changed",
    )


def _declared(prefix: Path) -> dict[str, str]:
    """Return what packages (`env_vars.d`) and the environment (`conda-meta/state`) declare."""
    variables: dict[str, str] = {}
    for path in sorted((prefix / "etc/conda/env_vars.d").glob("*.json")):
        variables.update(_variables(path, ()))
    state = prefix / "conda-meta/state"
    if state.exists():
        variables.update(_variables(state, ("env_vars",)))
    return variables


def _variables(path: Path, keys: Sequence[str]) -> dict[str, str]:
    try:
        data = json.loads(path.read_bytes())
        for key in keys:
            data = data.get(key, {})
        return {str(name): str(value) for name, value in data.items() if is_variable(name)}
    except (ValueError, AttributeError, TypeError) as error:
        message = f"{path} does not hold variables: {error}"
        raise StoreError(message, hint="the package that brought it is damaged") from error
