"""Reads a living environment, conda's or a venv, for the recipe that takes its place.

What a recipe can say is taken, pinned to what is installed. What it cannot carry is named with
its reason: findings for the terminal, which the recipe repeats as comments.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name

from envbuild.errors import RecipeError
from envbuild.findings import Finding, Severity
from envbuild.recipe import requirements, specs, words

_ALIAS: Final = "https://conda.anaconda.org/"
"""conda's default `channel_alias`: a channel below it is known by its name."""
_SUBDIR: Final = re.compile(r"/(linux-64|linux-aarch64|noarch)/?$")
_SPECS: Final = re.compile(
    r"# (?P<what>update|install|create|remove|neutered) specs:\s*(?P<items>.*)"
)
_QUOTED: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_RUNTIME: Final = re.compile(r"nvidia-cuda-runtime(-cu\d+)?")
_LOCAL: Final = "its local version ({}) is another index's: name that in the recipe's indexes"


@dataclass(kw_only=True, slots=True)
class Living:
    """What a recipe takes over.

    Attributes:
        host: Whether the machine's Python is taken (a venv, or one of ours that was).
        python: Version of its Python, or None where it has none.
        cuda: CUDA version, or None where it is not known.
        channels: conda channels, the one with the most packages first.
        conda: Match specs, Python not among them.
        pypi: Requirements.
        asked: Whether the conda half is what was asked for, not all that is installed.
        findings: What was left out or changed: `not-carried`, warnings.
    """

    host: bool = False
    python: str | None = None
    cuda: str | None = None
    channels: list[str] = field(default_factory=list)
    conda: list[str] = field(default_factory=list)
    pypi: list[str] = field(default_factory=list)
    asked: bool = False
    findings: list[Finding] = field(default_factory=list)

    def leave(self, where: str, what: str, hint: str | None = None) -> None:
        """Note what the recipe does not carry."""
        warning = Severity.WARNING
        self.findings.append(
            Finding(code="not-carried", severity=warning, where=where, what=what, hint=hint)
        )


def load(prefix: Path) -> Living:
    """Read a living environment.

    Code: `not-carried` (warning).

    Args:
        prefix: Its folder.

    Raises:
        RecipeError: It is no environment, or a record of it cannot be read.
    """
    found = Living()
    if (prefix / "conda-meta").is_dir():
        records = [_record(path) for path in sorted((prefix / "conda-meta").glob("*.json"))]
        theirs = _conda(found, prefix, [record for record in records if "name" in record])
    elif (prefix / "pyvenv.cfg").is_file():
        theirs = _venv(found, prefix)
    else:
        message = f"{prefix} is no environment: it has neither conda-meta nor pyvenv.cfg"
        raise RecipeError(message, source=str(prefix))
    for site in sorted(prefix.glob("lib/python3.*/site-packages")):
        _wheels(found, site, theirs)
    return found


def _record(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read: {error}"
        raise RecipeError(message, source=str(path)) from error
    return data if isinstance(data, dict) else {}


def _venv(found: Living, prefix: Path) -> dict[str, set[str]]:
    lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace").splitlines()
    keys = {
        key.strip().lower(): value.strip() for key, _, value in (x.partition("=") for x in lines)
    }
    version = re.match(r"3\.\d+", keys.get("version_info") or keys.get("version") or "")
    found.host, found.python = True, version[0] if version else None
    found.channels.append("host")
    if keys.get("include-system-site-packages") == "true":
        what = "packages of the system that it sees (include-system-site-packages) were left out"
        found.leave("pyvenv.cfg", what, "add those that are needed to the recipe's pypi")
    return {"names": set(), "folders": set()}


def _conda(found: Living, prefix: Path, records: Sequence[dict[str, Any]]) -> dict[str, set[str]]:
    asked = _asked(prefix, records)
    found.asked = bool(asked)
    counts: dict[str, int] = {}
    for record in records:
        name, version = str(record["name"]), str(record["version"])
        if name == "cuda-version":
            found.cuda = version
        if name == "python":
            found.host = str(record.get("build", "")).endswith("_host")
            found.python = ".".join(version.split(".")[:2]) if found.host else version
        channel = _channel(record)
        if channel is not None and not found.host:
            counts[channel] = counts.get(channel, 0) + 1
        if name == "python" or (asked and name not in asked):
            continue
        _conda_package(found, name, version, channel, record)
    if found.host:
        found.channels = ["host"]
    else:
        found.channels = sorted(counts, key=lambda one: (-counts[one], one)) or ["conda-forge"]
    variables = (
        _record(prefix / "conda-meta/state") if (prefix / "conda-meta/state").exists() else {}
    )
    for variable in sorted(variables.get("env_vars") or {}):
        found.leave("conda-meta/state", f"the variable {variable} of the environment was left out")
    return {
        "names": {canonicalize_name(str(record["name"])) for record in records},
        "folders": {
            str(path).rpartition("/")[0]
            for record in records
            for path in record.get("files") or ()
            if ".dist-info/" in str(path) or ".egg-info/" in str(path)
        },
    }


def _conda_package(
    found: Living, name: str, version: str, channel: str | None, record: dict[str, Any]
) -> None:
    where = f"{name} {version}"
    if channel is None:
        said = str(record.get("channel") or record.get("url") or "no channel")
        what = f"it comes from {words.without_login(said)}, which a recipe cannot name as a channel"
        found.leave(where, what, "serve that channel by http and add it to the recipe's channels")
        return
    try:
        found.conda.append(specs.parse(f"{name} =={version}").text)
    except ValueError as error:
        found.leave(where, str(error))


def _channel(record: dict[str, Any]) -> str | None:
    """Return a record's channel as a recipe names it, None where it cannot."""
    text = str(record.get("channel") or "")
    if not text and "/" in str(record.get("url", "")):
        text = str(record["url"]).rpartition("/")[0]
    text = _SUBDIR.sub("", text).rstrip("/").removeprefix(_ALIAS)
    if not text or text.startswith(("pkgs/", "defaults")) or "/pkgs/" in text:
        return None
    try:
        return words.channel(text)
    except ValueError:
        return None


def _asked(prefix: Path, records: Sequence[dict[str, Any]]) -> set[str]:
    """Return the names that were asked for: by conda's history, or as records say themselves."""
    names: set[str] = set()
    try:
        history = (prefix / "conda-meta/history").read_text(encoding="utf-8", errors="replace")
    except OSError:
        history = ""
    for line in history.splitlines():
        match = _SPECS.match(line)
        if match is None:
            continue
        quoted = [one or other for one, other in _QUOTED.findall(match["items"])]
        items = quoted or match["items"].strip("[]").split(",")
        mentioned = {name for item in items if (name := specs.name_of(item.strip())) is not None}
        if match["what"] == "remove":
            names -= mentioned
        elif match["what"] != "neutered":
            names |= mentioned
    for record in records:
        if record.get("requested_spec") or record.get("requested_specs"):
            names.add(str(record["name"]))
    return names & {str(record["name"]) for record in records}


def _wheels(found: Living, site: Path, theirs: dict[str, set[str]]) -> None:
    """Take what pip or uv installed: every distribution that conda did not bring."""
    below = f"{site.parents[1].name}/{site.parent.name}/{site.name}"
    for folder in sorted([*site.glob("*.dist-info"), *site.glob("*.egg-info")]):
        if f"{below}/{folder.name}" in theirs["folders"]:
            continue
        metadata = _metadata(folder)
        if metadata is None:
            found.leave(folder.name, "it has no metadata with a name and a version")
            continue
        name, version = metadata
        if name == "pip":
            continue
        if name in theirs["names"]:
            what = f"pip installed {name} {version} beside conda's {name}: conda's is taken"
            found.leave(name, what)
        elif reason := _elsewhere(folder):
            found.leave(f"{name} {version}", reason, "publish it to an index, then add it to pypi")
        else:
            _requirement(found, name, version)
    for link in sorted(site.glob("*.egg-link")):
        found.leave(link.stem, f"it is an editable install of {_first_line(link)}")


def _requirement(found: Living, name: str, version: str) -> None:
    public, _, local = version.partition("+")
    text = f"{name} =={public}"
    try:
        requirements.parse(text)
    except ValueError as error:
        found.leave(f"{name} {version}", str(error))
        return
    if local:
        found.leave(f"{name} {version}", _LOCAL.format(f"+{local}"))
    found.pypi.append(text)
    if found.cuda is None and _RUNTIME.fullmatch(name):
        found.cuda = ".".join(public.split(".")[:2])


def _metadata(folder: Path) -> tuple[str, str] | None:
    """Return name and version of a distribution, None where it does not say."""
    for path in (folder / "METADATA", folder / "PKG-INFO", folder):
        if path.is_file():
            parsed = HeaderParser().parsestr(path.read_text(encoding="utf-8", errors="replace"))
            if parsed["Name"] and parsed["Version"]:
                return canonicalize_name(parsed["Name"]), parsed["Version"].strip()
    return None


def _elsewhere(folder: Path) -> str:
    """Return why no index can serve a distribution, empty where one can (PEP 610)."""
    path = folder / "direct_url.json"
    if not path.is_file():
        return ""
    data = _record(path)
    url = words.without_login(str(data.get("url", "")))
    if (data.get("dir_info") or {}).get("editable"):
        return f"it is an editable install of {url}"
    if "vcs_info" in data:
        commit = str(data["vcs_info"].get("commit_id", ""))[:12]
        return f"it comes from {data['vcs_info'].get('vcs', 'git')} {url} at {commit}"
    if url.startswith("file:"):
        return f"it was installed from {url}, on this machine"
    return f"it was installed from {url}, not from an index"


def _first_line(path: Path) -> str:
    return next(iter(path.read_text(encoding="utf-8", errors="replace").splitlines()), "?")


def comments(found: Living) -> Iterator[str]:
    """Yield a line per finding, for the recipe."""
    for finding in found.findings:
        yield f"{finding.where}: {finding.what}"
