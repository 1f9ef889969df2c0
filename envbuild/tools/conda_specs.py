"""Dependencies of conda records in the form that a lock keeps: one match spec per name."""

import re
from collections.abc import Sequence


def merge_depends(specs: Sequence[str]) -> tuple[str, ...]:
    """Return match specs sorted, one per name: a lock's map holds no more.

    Several specs of one name become one with all version parts joined by a comma, and the most
    telling of their builds.
    """
    by_name: dict[str, list[str]] = {}
    for spec in specs:
        name, rest = _split_spec(spec)
        by_name.setdefault(name, []).append(rest)
    return tuple(sorted(f"{name} {_merge(rests)}".strip() for name, rests in by_name.items()))


def _split_spec(spec: str) -> tuple[str, str]:
    found = re.match(r"\s*([^\s=<>!~\[,]+)\s*(.*)", spec, re.DOTALL)
    if found is None:
        return spec.strip(), ""
    return found[1], re.sub(r"\s*,\s*", ",", " ".join(found[2].split()))


def _merge(rests: Sequence[str]) -> str:
    unique = sorted(set(rests))
    if len(unique) == 1:
        return unique[0]
    versions: list[str] = []
    builds: list[str] = []
    for rest in unique:
        version, _, build = rest.partition(" ")
        parts = [f"({version})"] if "|" in version else version.split(",")
        versions += [part for part in parts if part not in {"", "*"}]
        builds += [build] if build not in {"", "*"} else []
    version = ",".join(sorted(set(versions))) or "*"
    build = max(builds, key=lambda text: (len(text), text), default="")
    return f"{version} {build}".strip() if build or version != "*" else ""
