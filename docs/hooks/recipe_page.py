"""The reference of a recipe's keys, from the JSON Schema that `envbuild schema` prints."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from envbuild.recipe.schema import schema

Part = Mapping[str, Any]

_HEAD = (
    "# Recipe keys\n\n"
    "Every key that a recipe may have, with type, default and an example; made from the schema "
    "that `envbuild schema` prints. [The recipe](recipe.md) explains how they go together.\n\n"
    "Every scalar is read as text: `3.10` is 3.10 and `no` is the word. A key that is not here is "
    "an error.\n"
)


def page() -> str:
    """Return the page in Markdown."""
    whole = schema()
    parts = [_HEAD, "## At the top\n", *_section("", whole, whole)]
    for path, name in _parts(whole, whole, ""):
        part = whole["$defs"][name]
        parts += [f"\n## {path} {{#{_anchor(path)}}}\n", f"{part['description']}\n"]
        parts += _section(path, part, whole)
    return "\n".join(parts)


def _parts(part: Part, whole: Part, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the definition's name of every mapping below a part."""
    for key, value in part["properties"].items():
        for name, suffix in _names(value):
            below = f"{path}.{key}{suffix}".lstrip(".")
            yield below, name
            yield from _parts(whole["$defs"][name], whole, below)


def _names(value: Part) -> Iterator[tuple[str, str]]:
    """Yield the definitions that a key's value may be, and how a place in it is written."""
    if "$ref" in value:
        yield value["$ref"].rpartition("/")[2], ""
    for choice in (*value.get("anyOf", ()), *value.get("oneOf", ())):
        yield from _names(choice)
    if isinstance(value.get("items"), dict):
        yield from ((name, "[]") for name, _ in _names(value["items"]))
    if isinstance(value.get("additionalProperties"), dict):
        yield from ((name, ".NAME") for name, _ in _names(value["additionalProperties"]))


def _anchor(path: str) -> str:
    return "keys-of-" + path.replace("[]", "").replace(".", "-").lower()


def _section(path: str, part: Part, whole: Part) -> Iterator[str]:
    required = part.get("required", ())
    for key, value in part["properties"].items():
        below = f"{path}.{key}".lstrip(".")
        yield f"### {below}\n"
        yield f"{value['description']}\n"
        links = [f"[its keys](#{_anchor(f'{below}{suffix}')})" for _, suffix in _names(value)]
        yield "; ".join([f"- Type: {_type(value, whole)}", *links])
        yield f"- {_default(key, value, required)}"
        yield from _example(key, value)
        yield ""


def _default(key: str, value: Part, required: object) -> str:
    if isinstance(required, list) and key in required:
        return "Required"
    default = value.get("default")
    if not default and not isinstance(default, int):
        return "Default: none"
    if isinstance(default, dict):
        return "Default: those of its keys"
    return f"Default: `{_yaml(default)}`"


def _example(key: str, value: Part) -> Iterator[str]:
    for example in value.get("examples", ()):
        yield f"- Example: `{key}: {_yaml(example)}`"


def _yaml(value: object) -> str:
    """Return a value as a recipe may write it on one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_yaml(item)}' for key, item in value.items())}}}"
    text = str(value)
    quotes = text[:1] in set(">!*&%@-?|'\"[]{}#`") or ": " in text or "," in text or '"' in text
    if not quotes:
        return text
    return f"'{text}'" if '"' in text else json.dumps(text)


def _type(value: Part, whole: Part) -> str:
    choices = [*value.get("anyOf", ()), *value.get("oneOf", ())]
    if choices:
        told = [_type(choice, whole) for choice in choices if choice.get("type") != "null"]
        return " or ".join(dict.fromkeys(told))
    if "const" in value or "enum" in value:
        words = value.get("enum", [value.get("const")])
        return "one of " + ", ".join(f"`{word}`" for word in words)
    if value.get("type") == "array":
        return f"list of {_type(value.get('items', {}), whole)}"
    if "$ref" in value or value.get("type") == "object":
        below = value.get("additionalProperties")
        return f"names to {_type(below, whole)}" if isinstance(below, dict) else "mapping"
    return _scalar(value)


def _scalar(value: Part) -> str:
    if "integer" in value.get("type", ()):
        low, high = value.get("minimum"), value.get("maximum")
        return f"integer, {low} to {high}" if high else f"integer, at least {low}"
    if "boolean" in value.get("type", ()):
        return "true or false"
    return "date" if value.get("format") == "date" else "text"
