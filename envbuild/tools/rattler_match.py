"""Match specs against packages with py-rattler; loaded only in the worker process."""

from typing import Any

from rattler import MatchSpec, PackageName, PackageRecord
from rattler.exceptions import InvalidMatchSpecError
from rattler.package import BuildString


def match_all(request: dict[str, Any]) -> dict[str, Any]:
    """Answer for every pair of a spec and a package whether the package is one of the spec's."""
    specs: dict[str, MatchSpec | None] = {}
    answers: list[bool] = []
    for text, package in request["pairs"]:
        if text not in specs:
            specs[text] = _spec(text)
        spec = specs[text]
        answers.append(spec is not None and _matches(spec, package))
    return {"matches": answers}


def _spec(text: str) -> MatchSpec | None:
    try:
        return MatchSpec(text)
    except InvalidMatchSpecError:
        return None


def _matches(spec: MatchSpec, package: dict[str, str]) -> bool:
    # MatchSpec.matches of py-rattler 0.28 does not look at the channel.
    if spec.channel is not None and spec.channel.base_url.rstrip("/") != package["channel"]:
        return False
    record = PackageRecord(
        PackageName(package["name"]),
        package["version"],
        BuildString(package["build"]),
        _build_number(package["build"]),
        "noarch",
    )
    return spec.matches(record)


def _build_number(build: str) -> int:
    """Return the number at the end of a build string (conda-build's habit), or 0."""
    last = build.rpartition("_")[2]
    return int(last) if last.isdecimal() else 0
