"""`envbuild schema`: the JSON Schema of recipes."""

import json

from envbuild.cli import options, output


@options.command("schema", examples="envbuild schema > recipe.schema.json")
def command() -> None:
    """Print the JSON Schema of recipes, for editors."""
    from envbuild.recipe.schema import schema

    output.result(json.dumps(schema(), indent=2, ensure_ascii=False))
