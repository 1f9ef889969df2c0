"""What is known about a package, a card, a driver or what people say: found by its name."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from envbuild.compat import sentences
from envbuild.compat.consistency import numbers
from envbuild.compat.model import Facts, FrameworkBuild
from envbuild.compat.sentences import Statement
from envbuild.compat.triangle import Wanted, works

_WORDS = re.compile(r"[a-z0-9][a-z0-9._+-]*")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_NAMED = re.compile(r"(?P<name>[a-z][a-z0-9_-]*)(?:(?: ?== ?| )(?P<version>\d[0-9.]*))?")
_CODE = re.compile(r"(?:sm|compute)_(?P<number>\d{2,3})[af]?")
_SUFFIX = re.compile(r"-cu\d*$")
_PACKAGES = {
    "pytorch": "pytorch",
    "torch": "pytorch",
    "libtorch": "pytorch",
    "jax": "jax",
    "jaxlib": "jax",
    "cuda": "cuda",
    "cuda-toolkit": "cuda",
    "cuda-version": "cuda",
    "nvcc": "nvcc",
    "cudnn": "cudnn",
    "nvidia-cudnn": "cudnn",
    "driver": "driver",
    "nvidia-driver": "driver",
}
_MOST = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """What is known about something.

    Attributes:
        name: What it is called.
        kind: What it is: `package`, `card`, `driver`, `topic`, `claim`, `known-bad`,
            `xid` or `search`.
        statements: What is known, the most important first.
        see: What to ask next.
    """

    name: str
    kind: str
    statements: tuple[Statement, ...]
    see: tuple[str, ...] = ()


def names(facts: Facts) -> Mapping[str, str]:
    """Return what can be asked for, with its kind."""
    found = {row.id: "topic" for row in facts.topics}
    found |= dict.fromkeys(("pytorch", "jax", "cuda", "cudnn", "nvcc"), "package")
    found |= {row.id: "card" for row in facts.gpus}
    found |= {f"driver {row.branch}": "driver" for row in facts.branches}
    found |= {row.id: "claim" for row in facts.claims}
    found |= {row.id: "known-bad" for row in facts.known_bad}
    return found | {row.name: "xid" for row in facts.xids}


def explain(facts: Facts, text: str) -> Explained | None:
    """Return what is known about something, or None.

    Args:
        facts: The tables.
        text: A topic, a package with or without version, a card, a compute capability, a driver,
            the id of a claim, or words of one.
    """
    wanted = " ".join(text.lower().split())
    found = _topic(facts, wanted) or _listed(facts, wanted) or _card(facts, wanted)
    return found or _package(facts, wanted) or _searched(facts, wanted)


def _topic(facts: Facts, wanted: str) -> Explained | None:
    name = wanted.removeprefix("topic ").replace(" ", "-")
    packages = set(_PACKAGES) - {"driver"}
    for row in facts.topics:
        if name not in packages and name in (row.id, *row.also):
            return Explained(
                name=row.id, kind="topic", statements=(sentences.topic(row),), see=row.see
            )
    return None


def _listed(facts: Facts, wanted: str) -> Explained | None:
    """Return what is known about a claim, a known failure or an Xid, by its id."""
    for claim in facts.claims:
        if wanted.removeprefix("claim ") == claim.id:
            return Explained(name=claim.id, kind="claim", statements=(sentences.claim(claim),))
    for bad in facts.known_bad:
        if wanted.removeprefix("known-bad ") == bad.id:
            statements = (sentences.known_bad(bad),)
            return Explained(name=bad.id, kind="known-bad", statements=statements)
    for xid in facts.xids:
        if wanted == xid.name:
            return Explained(name=xid.name, kind="xid", statements=(sentences.xid(xid),))
    return None


def _card(facts: Facts, wanted: str) -> Explained | None:
    """Return what is known about a card or compute capability."""
    name = wanted.removeprefix("gpu ").removeprefix("capability ")
    cards = [row for row in facts.gpus if name.replace(" ", "-") in (row.id, row.title.lower())]
    code = _CODE.fullmatch(name)
    meant = f"{code['number'][:-1]}.{code['number'][-1]}" if code else name
    capabilities = {row.capability for row in cards}
    kinds = [
        row
        for row in facts.architectures
        if row.capability in {*capabilities, meant} or row.title.lower() == name
    ]
    if not kinds:
        return None
    told = {kind.capability for kind in kinds}
    same = tuple(row.id for row in facts.gpus if row.capability in told)
    statements = [*map(sentences.gpu, cards)]
    statements += [one for row in kinds for one in sentences.architecture(facts, row)]
    others = () if cards else same
    listing = f"envbuild triangle list --gpu {cards[0].id if cards else kinds[0].capability}"
    title = cards[0].id if cards else name
    return Explained(name=title, kind="card", statements=tuple(statements), see=(*others, listing))


def _package(facts: Facts, wanted: str) -> Explained | None:
    """Return what is known about a package, as far as its version is told."""
    match = _NAMED.fullmatch(wanted)
    bare = _VERSION.fullmatch(wanted)
    if bare and any(str(row.branch) == wanted.partition(".")[0] for row in facts.branches):
        return _driver(facts, wanted)
    if match is None:
        return None
    named = _SUFFIX.sub("", match["name"].replace("_", "-"))
    version = (match["version"] or "").strip(".")
    name = _PACKAGES.get(named)
    makers: Mapping[str, Callable[[Facts, str], Explained | None]] = {
        "cuda": _cuda,
        "cudnn": _cudnn,
        "nvcc": _nvcc,
        "driver": _driver,
    }
    if name in ("pytorch", "jax"):
        return _framework(facts, name, version)
    if name is not None:
        return makers[name](facts, version)
    if named in ("gcc", "clang") and version:
        return _compiler(facts, named, version)
    about = tuple(sentences.failures(facts, named, (version,) if version else ()))
    return Explained(name=named, kind="package", statements=about) if about else None


def _framework(facts: Facts, name: str, version: str) -> Explained | None:
    package = "torch" if name == "pytorch" else name
    rows = [row for row in facts.builds if row.framework == name]
    if not version:
        statements = [
            *_releases(facts, rows),
            *sentences.failures(facts, package),
            *sentences.said(facts, package),
        ]
        see = (f"{name} VERSION", f"envbuild triangle list --framework {name}")
        return Explained(name=name, kind="package", statements=tuple(statements), see=see)
    chosen = [row for row in rows if _begins(row.version, version)]
    if not chosen:
        return None
    versions = sorted({row.version for row in chosen})
    statements = [sentences.build(facts, row) for row in chosen]
    statements += sentences.failures(facts, package, versions)
    exact = version if version in versions else f"{version}.*"
    see = (name, f"envbuild triangle list --framework '{name}=={exact}'")
    return Explained(
        name=f"{name} {version}", kind="package", statements=tuple(statements), see=see
    )


def _releases(facts: Facts, rows: Sequence[FrameworkBuild]) -> Iterator[Statement]:
    """Yield what changed between releases: of PyTorch those on PyPI, of JAX each extra."""
    wheels = [row for row in rows if row.build_string is None]
    common = [row for row in wheels if row.origin == "pypi"] or wheels
    for origin in sorted({row.origin for row in common}):
        some = [row for row in common if row.origin == origin and row.platform == "linux-64"]
        yield from sentences.builds(facts, some)


def _cuda(facts: Facts, version: str) -> Explained | None:
    toolkits = [row for row in facts.toolkits if _begins(row.version, version)]
    if not toolkits:
        return None
    statements = [sentences.toolkit(row) for row in (toolkits if version else toolkits[-1:])]
    if version:
        release = ".".join(version.split(".")[:2])
        statements += [sentences.nvcc(row) for row in facts.nvccs if _begins(row.cuda, release)]
        for row in facts.architectures:
            if _begins(row.first_cuda, release):
                statements.append(
                    sentences.of(row, f"It is the first with code for {row.capability}.")
                )
        built = [row for row in facts.builds if row.cuda and _begins(row.cuda, release)]
        statements += _built(built)
    else:
        statements += sentences.said(facts, "cuda")
    see = ("minor-version-compatibility", "forward-compatibility", "host-compiler")
    title = f"cuda {version}".strip()
    return Explained(name=title, kind="package", statements=tuple(statements), see=see)


def _built(rows: Sequence[FrameworkBuild]) -> Iterator[Statement]:
    """Yield the framework releases that are built with a CUDA, one statement per origin."""
    origins = dict.fromkeys((row.framework, row.origin, row.platform) for row in rows)
    for framework, origin, platform in origins:
        some = [
            r for r in rows if (r.framework, r.origin, r.platform) == (framework, origin, platform)
        ]
        some.sort(key=lambda row: numbers(row.version))
        versions = ", ".join(row.version for row in some)
        where = "" if platform == "linux-64" else f", {platform}"
        yield sentences.of(some[-1], f"Built with it: {framework} {versions} ({origin}{where}).")


def _nvcc(facts: Facts, version: str) -> Explained | None:
    rows = [row for row in facts.nvccs if _begins(row.cuda, ".".join(version.split(".")[:2]))]
    statements = tuple(map(sentences.nvcc, rows))
    title = f"nvcc {version}".strip()
    return Explained(name=title, kind="package", statements=statements) if rows else None


def _compiler(facts: Facts, name: str, version: str) -> Explained | None:
    major = numbers(version)[0]
    rows = [
        row
        for row in facts.nvccs
        if numbers(row.gcc_min if name == "gcc" else row.clang_min)[0]
        <= major
        <= (row.gcc_max if name == "gcc" else row.clang_max)
    ]
    if not rows:
        return None
    cudas = ", ".join(row.cuda for row in rows)
    text = f"{name} {major} is taken by nvcc of CUDA {cudas}."
    return Explained(
        name=f"{name} {major}",
        kind="package",
        statements=(sentences.of(rows[-1], text),),
        see=("host-compiler",),
    )


def _cudnn(facts: Facts, version: str) -> Explained | None:
    rows = [row for row in facts.cudnns if _begins(row.version, version)]
    statements = [sentences.cudnn(row) for row in (rows if version else rows[-2:])]
    if version:
        users = [each.build for each in works(facts, Wanted(cudnn=version))]
        statements += _taken(users)
    if not statements:
        return None
    statements += sentences.failures(facts, "nvidia-cudnn", (version,) if version else ())
    if not version:
        statements += sentences.said(facts, "cudnn")
    title = f"cudnn {version}".strip()
    return Explained(name=title, kind="package", statements=tuple(statements), see=("cudnn-major",))


def _taken(rows: Sequence[FrameworkBuild]) -> Iterator[Statement]:
    """Yield the framework releases that take a cuDNN, one statement per origin."""
    for framework, origin in dict.fromkeys((row.framework, row.origin) for row in rows):
        some = [row for row in rows if (row.framework, row.origin) == (framework, origin)]
        some.sort(key=lambda row: numbers(row.version))
        versions = ", ".join(row.version for row in some)
        yield sentences.of(some[-1], f"Taken by {framework} {versions} ({origin}).")


def _driver(facts: Facts, version: str) -> Explained | None:
    if not version:
        return None
    row = next(
        (one for one in facts.branches if f"{one.branch}" == version.partition(".")[0]), None
    )
    if row is None:
        return None
    return Explained(
        name=f"driver {version}",
        kind="driver",
        statements=tuple(sentences.branch(facts, row)),
        see=("driver", "minor-version-compatibility", f"envbuild triangle list --driver {version}"),
    )


def _searched(facts: Facts, wanted: str) -> Explained | None:
    """Return what has all words of a question, a few at most."""
    words = _WORDS.findall(wanted)
    if not words:
        return None
    found: list[Statement] = []
    for text, statement in _texts(facts):
        there = set(_WORDS.findall(text.lower()))
        there |= {word.rpartition(".")[2] for word in there}  # torch.backends.cudnn.benchmark
        if all(any(each.startswith(word) for each in there) for word in words):
            found.append(statement)
    if not found:
        return None
    return Explained(name=wanted, kind="search", statements=tuple(found[:_MOST]))


def _texts(facts: Facts) -> Iterator[tuple[str, Statement]]:
    """Yield what is told in words, and the words to find it by."""
    for claim in facts.claims:
        yield f"{claim.id} {claim.claim}", sentences.claim(claim)
    for topic in facts.topics:
        yield " ".join((topic.id, topic.title, *topic.also)), sentences.topic(topic)
    for bad in facts.known_bad:
        text = " ".join((bad.id, *bad.packages, bad.when, bad.effect))
        yield text, sentences.known_bad(bad)


def _begins(version: str, wanted: str) -> bool:
    """Say whether a version is what is wanted, as far as that is told."""
    parts = wanted.split(".") if wanted else []
    return version.split(".")[: len(parts)] == parts
