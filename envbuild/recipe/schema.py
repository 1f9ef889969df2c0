"""The JSON Schema of recipes, for editors."""

from typing import Any, Final

from envbuild.recipe.merge import EXTENDS, VARIABLES
from envbuild.recipe.model import Recipe

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_TEXT: Final = ["string", "number"]
_EXTRA: Final[dict[str, dict[str, Any]]] = {
    EXTENDS: {
        "type": "string",
        "minLength": 1,
        "description": "Name of the recipe that this one extends, or its file. Mappings merge key "
        "by key, lists of requirements add up, everything else is replaced.",
        "examples": ["trainer"],
    },
    VARIABLES: {
        "type": "object",
        "additionalProperties": {"type": _TEXT},
        "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_-]*$"},
        "description": "Text by name, used as `${name}` in any value (`$${` for a literal `${`). "
        "A recipe that extends overrides them.",
        "examples": [{"torch": "2.4.1"}],
    },
}


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of recipes.

    An editor sees `3.10` as a number where a recipe has text, and both are fine: every scalar of
    a recipe is read as text.
    """
    found: dict[str, Any] = _as_written(Recipe.model_json_schema())
    name, *others = found["properties"].items()
    found["properties"] = dict((name, *_EXTRA.items(), *others))
    return {"$schema": DIALECT, **found}


def _as_written(part: Any) -> Any:  # noqa: ANN401
    """Let numbers stand for text and text for numbers, as the reader does; drop titles."""
    if isinstance(part, list):
        return [_as_written(item) for item in part]
    if not isinstance(part, dict):
        return part
    is_value = "title" not in part or not isinstance(part["title"], dict)
    result = {
        key: value if key == "propertyNames" else _as_written(value)
        for key, value in part.items()
        if not (key == "title" and is_value)
    }
    if not result.keys() & {"enum", "const", "format"}:
        if result.get("type") == "string":
            result["type"] = _TEXT
        elif result.get("type") == "integer":
            result["type"] = ["integer", "string"]
        elif result.get("type") == "boolean":
            result["type"] = ["boolean", "string"]
    return result
