"""`envbuild info`: the installation, or one environment."""

import shutil
from dataclasses import asdict

import click

from envbuild import __version__
from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.store import inventory, moved, present, use
from envbuild.store.inventory import Details


@options.command(
    "info",
    examples="""
    envbuild info
    envbuild info h100-pt24 --json
    """,
)
@options.generation_option
@options.environment_argument(required=False)
@options.json_option
@click.pass_obj
def command(here: Here, name: str | None, generation: str | None, *, as_json: bool) -> None:
    """Show the installation, or one environment: what it was made from and how sure that is."""
    if name is None:
        if generation is not None:
            message = "--generation needs a NAME"
            raise click.UsageError(message)
        data = _installation(here)
    else:
        place = present.found(here.stores, name)
        data = {"store": str(place.store.root)}
        data |= _environment(inventory.details(use.chosen(place, generation)))
        data["generations"] = [asdict(each) for each in inventory.listed(place)]
    if as_json:
        output.print_json(data)
    else:
        output.result(_text(data))


def _installation(here: Here) -> dict[str, object]:
    store = here.store
    free = shutil.disk_usage(store.root).free if store.root.exists() else None
    return {
        "envbuild": __version__,
        "platform": here.platform,
        "store": str(store.root),
        "system_store": str(here.system_store.root),
        "free_bytes": free,
        "environments": len(present.names(store)),
        "caches": {
            "conda": str(store.package_cache),
            "uv": str(store.uv_cache),
            "metadata": str(store.metadata_cache),
        },
        "recipe_folders": [str(folder) for folder in here.recipe_folders],
        "lock_folders": [str(folder) for folder in here.lock_folders],
    }


def _environment(found: Details) -> dict[str, object]:
    made = found.manifest
    kinds = [package.kind for package in made.packages]
    away = [one for one in [moved.finding(found.generation, made.prefix)] if one]
    return {
        "name": made.name,
        "generation": made.generation,
        "current": found.current,
        "prefix": str(found.generation.prefix),
        "created": made.created,
        "platform": made.platform,
        "python": found.python or None,
        "environment_digest": made.environment_digest,
        "solve_digest": made.solve_digest,
        "recipe": dict(made.inputs.recipe),
        "lock": dict(made.inputs.lock),
        "interpreter": _interpreter(found),
        "packages": {"conda": kinds.count("conda"), "pypi": kinds.count("pypi")},
        "channels": [output.mask(channel) for channel in found.channels],
        "indexes": [index or "default" for index in found.indexes],
        "files": made.file_count,
        "bytes": made.file_bytes,
        "own_bytes": found.own_size,
        "compiled": made.compiled,
        "needs": found.needs,
        "reproducible": list(found.reproducible),
        "findings": output.findings_json((*away, *made.findings)),
    }


def _interpreter(found: Details) -> dict[str, str] | None:
    interpreter = found.manifest.interpreter
    if interpreter is None:
        return None
    return {
        "path": interpreter.path,
        "version": interpreter.version,
        "digest": interpreter.digest,
    }


def _text(data: dict[str, object]) -> str:
    """Return an object as lines of a label and a value, one more line per further value."""
    width = max(map(len, data)) + 1
    lines = []
    for label, value in data.items():
        texts = _texts(label, value) or ["-"]
        title = click.style(f"{label.replace('_', ' ')}:".ljust(width), bold=True)
        lines.append(f"{title} {texts[0]}")
        lines += [f"{'':{width}} {text}" for text in texts[1:]]
    return "\n".join(lines)


def _texts(label: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, int) and label.endswith("bytes"):
        return [output.bytes_text(value)]
    if isinstance(value, dict):
        return [f"{key} {_flat(part)}" for key, part in value.items()]
    if isinstance(value, list):
        return [_flat(part) for part in value]
    return [] if value is None else [str(value)]


def _flat(value: object) -> str:
    """Return a value in one line; of a finding or a generation, what a person looks for."""
    if not isinstance(value, dict):
        return str(value)
    if "identifier" in value:
        marks = [mark for mark in ("current", "pinned") if value[mark]]
        size = output.bytes_text(value["size"])
        return ", ".join((f"{value['identifier']} {value['created']} {size}", *marks))
    if "code" in value:
        return f"{value['severity']}: {value['where']}: {value['what']} [{value['code']}]"
    return " ".join(str(part) for part in value.values() if part is not None) or "unknown"
