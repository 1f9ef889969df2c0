"""What a wheel or a conda package declares of itself: tags, variants, its list of files."""

from collections.abc import Iterator, Mapping
from email.parser import BytesParser
from math import prod
from typing import Any

import msgspec
from packaging.tags import parse_tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from envbuild.native import record
from envbuild.native.package import PackageFacts

_PARTS_WITH_VARIANT = 6
_MOST_TAGS = 1000
_MOST_HEAD_BYTES, _MOST_JSON_BYTES = 64 << 10, 1 << 20


def wheel(
    name: str,
    texts: Mapping[str, bytes],
    content: record.Content,
    members: tuple[tuple[str, str], ...],
) -> PackageFacts:
    """Return what a wheel declares.

    Args:
        name: Its file name.
        texts: Content of RECORD, WHEEL and variant.json, by path.
        content: Its files.
        members: Members that it cannot have, each with what is wrong.

    Raises:
        ValueError: RECORD cannot be read.
    """
    by_name = {
        path.rpartition("/")[2]: data for path, data in texts.items() if path.count("/") == 1
    }
    plain, variant = _without_variant(name)
    rows = by_name.get("RECORD")
    return PackageFacts(
        format="wheel",
        file_name=name,
        file_tags=_file_tags(plain),
        wheel_tags=_wheel_tags(by_name.get("WHEEL", b"")),
        record=() if rows is None else record.wheel_differences(rows, content),
        has_record=rows is not None,
        variant=variant,
        properties=tuple(_properties(by_name.get("variant.json"), variant)),
        odd_members=members,
    )


def conda(
    name: str,
    texts: Mapping[str, bytes],
    content: record.Content,
    links: frozenset[str],
    members: tuple[tuple[str, str], ...],
) -> PackageFacts:
    """Return what a conda package declares.

    Args:
        name: Its file name.
        texts: Content of `info/paths.json`, by path.
        content: Its files.
        links: Paths of its links.
        members: Members that it cannot have, each with what is wrong.

    Raises:
        ValueError: `info/paths.json` cannot be read.
    """
    paths = texts.get("info/paths.json")
    return PackageFacts(
        format="conda",
        file_name=name,
        record=() if paths is None else record.conda_differences(paths, content, links),
        has_record=paths is not None,
        odd_members=members,
    )


def _without_variant(name: str) -> tuple[str, str | None]:
    """Split the variant's label off a wheel's name: `a-1-py3-none-any-cu128.whl`.

    A build number begins with a digit and is the third part; a label is the last of six or seven.
    """
    parts = name.removesuffix(".whl").split("-")
    if len(parts) < _PARTS_WITH_VARIANT or (
        len(parts) == _PARTS_WITH_VARIANT and parts[2][:1].isdigit()
    ):
        return name, None
    return "-".join(parts[:-1]) + ".whl", parts[-1]


def _file_tags(name: str) -> frozenset[str]:
    try:
        return frozenset(map(str, parse_wheel_filename(name)[3]))
    except (InvalidWheelFilename, ValueError):
        return frozenset()


def _wheel_tags(text: bytes) -> frozenset[str]:
    head = BytesParser().parsebytes(text[:_MOST_HEAD_BYTES], headersonly=True)
    found: set[str] = set()
    for header in head.get_all("Tag", [])[:_MOST_TAGS]:
        line = f"{header}".strip()
        spelt = prod(part.count(".") + 1 for part in line.split("-"))
        try:
            found.update(map(str, parse_tag(line)) if spelt <= _MOST_TAGS else [line[:200]])
        except ValueError:
            found.add(line[:200])
    return frozenset(found)


def _properties(
    text: bytes | None, label: str | None
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield namespace, feature and values of a variant (`variant.json` of the draft PEP 825)."""
    try:
        read = msgspec.json.decode((text or b"{}")[:_MOST_JSON_BYTES], type=dict[str, Any])
        variants = read["variants"]
        chosen = variants[label] if label in variants else next(iter(variants.values()))
        for namespace, features in chosen.items():
            for feature, values in features.items():
                yield str(namespace), str(feature), tuple(map(str, values))
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError):
        return
