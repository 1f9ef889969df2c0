"""Words, variables and directories reach a program as the recipe has them."""

import json
import random
import shlex
from pathlib import PurePosixPath
from typing import Any

from system.machine import Machine
from system.payload import STORE

from envbuild.recipe.load import loads
from envbuild.units.model import Manager, Origin
from envbuild.units.render import Templates, render

_HOSTILE = "\"'`\\%$;:{}[]()#=&|<>*?~!@, \t\n\r\x01\x1b\x7f\x85\u2028äß€\U0001f600aiHX0-"
_IN_A_PATH = [each for each in _HOSTILE if each.isprintable()]
_SERVICES = 12
_WRITTEN = (
    'print("100%", r"C:\\n", "$HOME ${X} $$ %i %%")',
    "/bin/true ; exit 1",
    "",
    " ",
    "@-+!!:/x",
    'it\'s "this"',
    "line\nExecStart=/bin/false\n",
)


def _wish(seed: int) -> dict[str, Any]:
    """Return a service of odd text; the same one for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - text, not a secret

    def text(alphabet: list[str], least: int, most: int) -> str:
        return "".join(chance.choices(alphabet, k=chance.randint(least, most)))

    every = list(_HOSTILE)
    words = [text(every, 0, 20) for _ in range(4)]
    variables = {f"Z{number}": text(every, 0, 20) for number in range(4)}
    parts = [text(_IN_A_PATH, 1, 12).strip() or "x" for _ in range(2)]
    return {"words": words, "environment": variables, "directory": "/".join(("/var/odd", *parts))}


def _yaml(text: str) -> str:
    """Return a text as YAML, with every character by its number."""
    return '"' + "".join(f"\\U{ord(each):08x}" for each in text.replace("${", "$${")) + '"'


def _recipe(wishes: list[dict[str, Any]]) -> str:
    lines = ["name: odd", "services:"]
    for number, wish in enumerate(wishes):
        pairs = (f"{name}: {_yaml(value)}" for name, value in wish["environment"].items())
        lines += [
            f"  s{number}:",
            f"    exec: [python, -I, /srv/job.py, tell, {', '.join(map(_yaml, wish['words']))}]",
            f"    environment: {{{', '.join(pairs)}}}",
            f"    working_directory: {_yaml(wish['directory'])}",
            "    kind: oneshot",
        ]
    return "\n".join(lines)


def test_hostile_text_arrives_as_written(guest: Machine) -> None:
    wishes = [_wish(seed) for seed in range(_SERVICES)]
    wishes[0]["words"] = list(_WRITTEN)
    prefix = guest.run(f"readlink -f {STORE}/envs/plain/current").out.strip()
    origin = Origin(name="odd", prefix=prefix, own=f"{prefix}/.envbuild")
    loaded = loads(_recipe(wishes), source="odd.yaml")
    files = render(loaded, origin, Manager(), Templates())
    guest.put_all({f"/etc/systemd/system/{file.name}": file.text for file in files})
    folders = " ".join(shlex.quote(wish["directory"]) for wish in wishes)
    guest.run(f"mkdir -p {folders} && systemctl daemon-reload")
    names = [f"envbuild-odd.s{number}.service" for number in range(_SERVICES)]
    guest.run(["systemctl", "start", *names])
    journal = guest.journal("--output=json", "--output-fields=MESSAGE,_SYSTEMD_UNIT")
    lines = [json.loads(line) for line in journal.splitlines()]
    for name, wish in zip(names, wishes, strict=True):
        (message,) = [
            line["MESSAGE"]
            for line in lines
            if line.get("_SYSTEMD_UNIT") == name and str(line["MESSAGE"]).startswith("{")
        ]
        told = json.loads(message)
        assert told["words"] == wish["words"]
        assert told["environment"].items() >= wish["environment"].items()
        assert told["directory"] == f"{PurePosixPath(wish['directory'])}"
        assert told["user"] != 0
