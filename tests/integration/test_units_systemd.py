"""Units as systemd's own tools read them: silent, exact, closed."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from integration import systemd_reading
from unit.units.rendering import rendered

import envbuild
from envbuild.recipe import command_line
from envbuild.recipe.load import LoadedRecipe, available, load, loads
from envbuild.recipe.service_checks import argv, gpu_of
from envbuild.units import names
from envbuild.units.model import Manager, Origin
from envbuild.units.render import Templates, render

_RECIPES = Path(envbuild.__file__).parent / "recipes"
_BATCH = 50
_HOSTILE = "\"'`\\%$;:{}[]()#=&|<>*?~!@, \t\n\r\x01\x1b\x7f\x85\u2028äß€\U0001f600aiHX0-"


@pytest.fixture(autouse=True)
def _analyze(program: Callable[[str], str]) -> None:
    program("systemd-analyze")


_NVIDIAS = re.compile("/usr/bin/nvidia-(cuda-mps-control|modprobe)|(?<==)envbuild(?= slice)")


def _written(folder: Path, loaded: LoadedRecipe, manager: Manager) -> list[Path]:
    """Write a recipe's units with programs that are there."""
    prefix = folder / "prefix"
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    for service in loaded.recipe.services.values():
        for name in ("python", argv(service.exec)[0]):
            stub = prefix / "bin" / name
            if not stub.exists():
                stub.symlink_to("/bin/true")
    origin = Origin(name=loaded.recipe.name, prefix=f"{prefix}", own=f"{prefix}/.envbuild")
    files: list[Path] = []
    for file in render(loaded, origin, manager, Templates()):
        path = folder / file.name
        path.write_text(_NVIDIAS.sub("/bin/true", file.text))
        files.append(path)
    return files


@pytest.mark.parametrize("name", available((_RECIPES,)))
def test_what_ships_is_silent_and_closed(name: str, tmp_path: Path) -> None:
    loaded = load(name, (_RECIPES,))
    files = _written(tmp_path, loaded, Manager())
    if not files:
        assert not loaded.recipe.services
        return
    seen = systemd_reading.verify(files)
    assert (seen.returncode, seen.stdout, seen.stderr) == (0, "", "")
    for service, wish in loaded.recipe.services.items():
        file = tmp_path / names.service_unit(name, service, wish.kind)
        seen = systemd_reading.exposure(file, at_most=1.3 if gpu_of(wish) is None else 2.0)
        assert seen.returncode == 0, seen.stdout
    for file in files:
        at_most = 2.6 if file.name == names.NODES else 2.0  # that one loads modules, as root
        if file.suffix == ".service":
            seen = systemd_reading.exposure(file, at_most=at_most)
            assert seen.returncode == 0, seen.stdout


_KINDS = """
services:
  plain: {exec: x, user: trainer, working_directory: /home/trainer/x, write: [/home/trainer/x]}
  card: {exec: [x], gpu: 2, limits: {cpus: 0-3, io_read_bandwidth: {/: 1G}}, network: none}
  shared: {exec: x, user: trainer, gpu: {memory: 8G, sm_share: 30.5%, cards: ["0000:1b:00.0"]}}
  part: {exec: x, gpu: {memory: 50%, isolation: mig, pcie: 3G}}
  once: {exec: x, kind: oneshot, restart: {policy: on-failure}}
  daily: {exec: x, kind: timer, schedule: "Mon *-*-* 03:00"}
  asked: {exec: x, kind: socket, listen: [8000, "[::1]:9000", /run/x.sock], network: loopback}
  worker: {exec: "work --number %i", kind: template, write: [/srv/%i], credentials: {t: /etc/%i}}
  ready: {exec: x, readiness: {kind: port, port: 80}, after: [network-online.target, once]}
  told: {exec: x, readiness: {kind: notify}, watchdog: 30s, requires: [asked, plain]}
  signal: {exec: x, stop: {signal: SIGRTMIN+3, checkpoint_time: 1h 30min}}
slice: {memory_high: 80%, memory_max: 90.5%, cpu_quota: 1250.5%, tasks_max: 10%, io_weight: 5}
"""


def test_every_kind_is_silent(tmp_path: Path) -> None:
    files = _written(tmp_path, loads(f"name: x\n{_KINDS}", source="x.yaml"), Manager())
    seen = systemd_reading.verify(files)
    assert (seen.returncode, seen.stdout, seen.stderr) == (0, "", "")


@pytest.mark.parametrize("service", ["plain", "card", "once", "asked", "worker", "told"])
def test_every_kind_is_closed(service: str, tmp_path: Path) -> None:
    units = rendered(_KINDS)
    kind = "template" if service == "worker" else "service"
    file = tmp_path / names.service_unit("x", service, kind)
    file.write_text(units[file.name])
    seen = systemd_reading.exposure(file, at_most=2.0 if service == "card" else 1.3)
    assert seen.returncode == 0, seen.stdout


def test_units_of_a_users_manager_are_silent(tmp_path: Path) -> None:
    text = "name: x\nservices: {a: {exec: x, gpu: 1}, b: {exec: y, kind: timer, schedule: daily}}"
    files = _written(tmp_path, loads(text, source="x.yaml"), Manager(scope="user"))
    seen = systemd_reading.verify(files)
    assert (seen.returncode, seen.stdout, seen.stderr) == (0, "", "")


@pytest.mark.parametrize("text", ["h100-pt24", "h100.pt24", "a b", "größe", ".a", "a/b", "a\\b"])
def test_names_are_escaped_as_systemd_does(text: str, program: Callable[[str], str]) -> None:
    words = [program("systemd-escape"), text]
    seen = subprocess.run(words, capture_output=True, text=True, check=True)
    assert names.escape(text) == seen.stdout.rstrip("\n")


def _yaml(text: str) -> str:
    """Return a text as YAML, every odd character by its number."""
    plain = text.replace("${", "$${")
    escaped = "".join(
        each if " " <= each <= "~" and each not in '"\\' else f"\\U{ord(each):08x}"
        for each in plain
    )
    return f'"{escaped}"'


_TEXT = st.text(st.sampled_from(_HOSTILE), max_size=20)
_IN_A_PATH = _HOSTILE.translate(dict.fromkeys(map(ord, "\n\r\x01\x1b\x7f"), None))
_PART = st.text(st.sampled_from(_IN_A_PATH), min_size=1, max_size=12)
_PATH = st.lists(_PART.filter(lambda part: part.strip()), min_size=1, max_size=3).map(
    lambda parts: f"/srv/{'/'.join(parts)}".strip()
)
_PROGRAM = st.text(st.sampled_from("%;:{}()#=&|<>*?~!@, aiH0-ä€"), min_size=1, max_size=8).filter(
    lambda text: text.strip() == text
)
_SERVICE = st.fixed_dictionaries(
    {
        "program": _PROGRAM,
        "words": st.lists(_TEXT, max_size=4),
        "environment": st.dictionaries(
            st.from_regex(r"Z[A-Za-z0-9_]{0,6}", fullmatch=True), _TEXT, max_size=4
        ),
        "directory": _PATH,
        "write": st.lists(_PATH, max_size=2, unique=True),
        "description": _PART.filter(lambda text: text.strip() and not text.rstrip().endswith("\\")),
    }
)


def _recipe(services: list[dict[str, object]]) -> str:
    lines = ["name: x", "services:"]
    for number, service in enumerate(services):
        words = [service["program"], *_list(service["words"])]
        environment = service["environment"]
        assert isinstance(environment, dict)
        pairs = ", ".join(f"{name}: {_yaml(value)}" for name, value in environment.items())
        lines += [
            f"  s{number}:",
            f"    exec: [{', '.join(_yaml(str(word)) for word in words)}]",
            f"    environment: {{{pairs}}}",
            f"    working_directory: {_yaml(str(service['directory']))}",
            f"    write: [{', '.join(_yaml(str(path)) for path in _list(service['write']))}]",
            f"    description: {_yaml(str(service['description']))}",
        ]
    return "\n".join(lines)


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


@pytest.mark.slow
@settings(
    max_examples=1000 // _BATCH,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a batch takes minutes to shrink
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
@given(services=st.lists(_SERVICE, min_size=_BATCH, max_size=_BATCH))
def test_hostile_text_comes_back_as_written(
    services: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("units")
    loaded = loads(_recipe(services), source="x.yaml")
    files = _written(folder, loaded, Manager())
    seen = systemd_reading.verify(files)
    assert (seen.returncode, seen.stdout, seen.stderr) == (0, "", "")
    dumps = systemd_reading.read([file for file in files if file.suffix == ".service"])
    for number, service in enumerate(services):
        wish = loaded.recipe.services[f"s{number}"]
        dump = dumps[f"envbuild-x.s{number}.service"]
        words = [str(word) for word in _list(service["words"])]
        program = str(service["program"])
        assert systemd_reading.command(dump) == (f"{folder}/prefix/bin/{program}", *words)
        block = "".join(f"\t\tEnvironment: {n}={v}\n" for n, v in wish.environment.items())
        assert f"{block}\t\tEnvironmentFile: ".encode() in dump
        assert dump.count(b"\n\t\tEnvironment: ") == 5 + len(wish.environment)
        assert f"\t\tWorkingDirectory: {wish.working_directory}\n".encode() in dump
        if wish.write:
            assert f"\t\tReadWritePaths: {' '.join(wish.write)}\n".encode() in dump
        description = " ".join(str(service["description"]).split())
        assert f"\t\tDescription: {description}\n".encode() in dump


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(lines=st.lists(st.text(st.sampled_from("ab \t\"'\\nxs041;u"), max_size=12), min_size=20))
def test_command_lines_are_split_as_systemd_does(
    lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("split")
    split: dict[Path, tuple[str, ...]] = {}
    for number, line in enumerate(lines):
        if re.search(r"(^|[ \t])\\?;($|[ \t])", line):
            continue  # begins another command in a unit; here it is a word
        try:
            words = command_line.split(line)
        except ValueError:
            continue
        file = folder / f"s{number}.service"
        file.write_text(f"[Service]\nExecStart=/bin/true {line} end\n")
        split[file] = ("/bin/true", *words, "end")
    if split:
        dumps = systemd_reading.read(list(split))
        assert {file: systemd_reading.command(dumps[file.name]) for file in split} == split
