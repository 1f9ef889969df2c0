"""The JSON Schema: golden, every field described, and every sample recipe valid."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from envbuild.reader import read
from envbuild.recipe.schema import schema

ROOT = Path(__file__).parents[3]
SAMPLES = sorted([*ROOT.glob("recipes/*.yaml"), *ROOT.glob("tests/data/cases/recipe/full/*.yaml")])


def valid(document: object) -> bool:
    """Whether the schema takes a document; the validator knows the dialect under an older name."""
    dialect = {"$schema": "http://json-schema.org/draft-07/schema#"}
    try:
        fastjsonschema.compile(schema() | dialect)(document)
    except fastjsonschema.JsonSchemaException:
        return False
    return True


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("schema.json", json.dumps(schema(), indent=2, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_sample_recipes_are_valid(path: Path) -> None:
    assert valid(read(path.read_text(), source=str(path)).value)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"name": "x", "python": 3.1, "extends": "y", "variables": {"a": 1, "b": "c"}}, True),
        ({"name": "x", "services": {"a": {"exec": ["x"], "gpu": 2}}}, True),
        ({"name": "x", "services": {"a": {"exec": "x", "gpu": {"count": 2}}}}, True),
        ({"python": "3.11"}, False),
        ({"name": "x", "pyhton": "3.11"}, False),
        ({"name": "x", "conda": "numpy"}, False),
        ({"name": "x", "target": {"platforms": ["osx-64"]}}, False),
        ({"name": "x", "channels": []}, False),
        ({"name": "x", "services": {"a": {}}}, False),
    ],
)
def test_what_it_takes(document: object, *, expected: bool) -> None:
    assert valid(document) is expected


def fields(part: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401
    for name, field in part.get("properties", {}).items():
        yield f"{path}.{name}", field
    for name, model in part.get("$defs", {}).items():
        yield from fields(model, name)


def test_every_field_is_described() -> None:
    found = dict(fields(schema()))
    assert len(found) > 80
    assert [name for name, field in found.items() if not field.get("description")] == []
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert '"$id"' not in json.dumps(schema())
