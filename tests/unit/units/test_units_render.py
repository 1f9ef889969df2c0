"""Units of a recipe's services: what is in them, and what cannot be."""

from pathlib import Path

import pytest
from unit.units.rendering import PREFIX, rendered, values

from envbuild.errors import InputError, RecipeError
from envbuild.lock.digest import solve_digest
from envbuild.recipe.load import loads
from envbuild.units.model import Manager

_HOSTILE = r"""
services:
  a:
    exec: [python, -c, 'print("100%", r"C:\n", "$HOME $${X}")']
    working_directory: /srv/EPS%3Ax y
    environment:
      A: 50%
      B: say "hi"
      C: "one\ntwo"
      D: it's
      E: ""
      F: "%%"
"""


def test_percent_dollar_quotes_backslash_and_line_ends() -> None:
    unit = rendered(_HOSTILE)["envbuild-x.a.service"]
    assert values(unit, "ExecStart") == [
        PREFIX + r'/bin/python -c "print(\"100%%\", r\"C:\\n\", \"$$HOME $${X}\")"'
    ]
    assert values(unit, "WorkingDirectory") == ["/srv/EPS%%3Ax y"]
    assert values(unit, "Environment")[-6:] == [
        '"A=50%%"',
        r'"B=say \"hi\""',
        r'"C=one\ntwo"',
        '"D=it\'s"',
        '"E="',
        '"F=%%%%"',
    ]


def test_the_same_input_gives_the_same_bytes() -> None:
    assert rendered(_HOSTILE) == rendered(_HOSTILE)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("exec", r'["py\0"]', "NUL"),
        ("environment", r'{A: "a\0b"}', "NUL"),
        ("environment", '{"A-B": x}', "a variable's name"),
        ("environment", '{"1A": x}', "a variable's name"),
        ("environment", "{PATH: /bin}", "what activation sets"),
        ("working_directory", r'"/srv/a\nUser=root"', "a line end"),
        ("write", r'["/srv/a\nUser=root"]', "a line end"),
        ("credentials", r'{t: "/srv/a\nUser=root"}', "a line end"),
        ("user", r'"a\nUser=root"', "the name of a user"),
        ("after", r'["a.service\nUser=root"]', "a unit"),
        ("description", "ends in \\\\", "a backslash at the end"),
        ("exec", "[bin/python]", "neither a program's name nor an absolute path"),
        ("exec", '["/bin/p y\'"]', "systemd takes no such path"),
        ("exec", r"'a \q'", "no escape that systemd knows"),
        ("exec", "'a \"b'", "a quote is not closed"),
        ("limits", "{cpu_quota: 0%}", "a share"),
        ("limits", "{memory_max: 140%}", "a size"),
        ("limits", "{locked_memory: 80%}", "a size"),
        ("limits", "{cpu_wieght: 5}", "unknown key; did you mean cpu_weight?"),
        ("limits", '{io_read_bandwidth: {"/d\\nUser=root": 1M}}', "a line end"),
        ("gpu", "{isolation: mig, count: 2}", "one MIG instance"),
        ("gpu", "{cards: [0, 1], count: 1}", "2 cards are named"),
        ("gpu", "{cards: [first]}", "a card such as"),
        ("stop", "{signal: SIGFOO}", "a signal"),
        ("stop", "{checkpoint_time: 120s, timeout: 60s}", "shorter than the checkpoint"),
        ("restart", "{steps: 5}", "needs max_delay"),
        ("after", "[b]", "there is no service 'b'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(field: str, value: str, said: str) -> None:
    exec_ = "" if field == "exec" else "    exec: x\n"
    with pytest.raises(RecipeError) as caught:
        rendered(f"services:\n  a:\n{exec_}    {field}: {value}\n")
    line = 4 if field == "exec" else 5
    whole = f"{caught.value.message}\n{caught.value.details}"
    assert f"x.yaml:{line}:" in whole
    assert said in whole


def test_a_service_finds_its_environment_without_a_shell() -> None:
    unit = rendered("services: {a: {exec: serve --port 1}}")["envbuild-x.a.service"]
    assert values(unit, "ExecStart") == [f"{PREFIX}/bin/serve --port 1"]
    assert values(unit, "EnvironmentFile") == [f"{PREFIX}/.envbuild/units.env"]
    assert "bash" not in unit


def test_caches_are_writable_and_kept_per_environment() -> None:
    unit = rendered("services: {a: {exec: serve}}")["envbuild-x.a.service"]
    assert values(unit, "CacheDirectory") == ["envbuild/x/eb-x"]
    for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH"):
        assert f'Environment="{name}=%C/envbuild/x/eb-x/' in unit


def test_what_the_recipe_sets_replaces_our_own() -> None:
    unit = rendered("services: {a: {exec: serve, environment: {HOME: /srv, PYTHONPATH: /m}}}")
    text = unit["envbuild-x.a.service"]
    assert [one for one in values(text, "Environment") if "HOME=" in one and "XDG" not in one] == [
        '"HOME=/srv"'
    ]
    assert values(text, "UnsetEnvironment") == ["PYTHONHOME"]


def test_time_to_write_a_checkpoint() -> None:
    text = "services: {a: {exec: torchrun t.py, stop: {checkpoint_time: 120s}}}"
    unit = rendered(text)["envbuild-x.a.service"]
    assert values(unit, "TimeoutStopSec") == ["150s"]
    assert values(unit, "KillMode") == ["mixed"]
    assert values(unit, "SuccessExitStatus") == ["143"]
    assert "SendSIGKILL" not in unit  # its default is on


def test_the_default_time_to_stop_is_never_systemds() -> None:
    assert values(_one("exec: x"), "TimeoutStopSec") == ["30s"]
    assert values(_one("exec: x, stop: {timeout: 45s}"), "TimeoutStopSec") == ["45s"]


def test_another_stop_signal_is_no_failure_either() -> None:
    unit = _one("exec: x, stop: {signal: SIGUSR1}")
    assert values(unit, "KillSignal") == ["SIGUSR1"]
    assert values(unit, "SuccessExitStatus") == ["138 SIGUSR1"]


def test_one_worker_is_killed_for_memory() -> None:
    unit = _one("exec: x, limits: {memory_max: 4G}")
    assert values(unit, "OOMPolicy") == ["stop"]
    assert values(unit, "Restart") == ["on-failure"]
    old = _one("exec: x", manager=Manager(version=242))
    assert values(old, "OOMPolicy") == []
    assert "# OOMPolicy= needs systemd 243: " in old


_RESTARTS = """exec: x, restart: {delay: 10s, max_delay: 5min, steps: 4, limit: 5, interval: 3600,
  not_on: [2, 3]}"""


def test_start_limits_stand_in_the_section_unit() -> None:
    head, _, service = _one(_RESTARTS).partition("[Service]")
    assert values(head, "StartLimitIntervalSec") == ["3600"]
    assert values(head, "StartLimitBurst") == ["5"]
    assert "StartLimit" not in service
    assert values(service, "RestartPreventExitStatus") == ["2 3"]


@pytest.mark.parametrize(("version", "there"), [(252, False), (253, False), (254, True)])
def test_keys_that_the_systemd_lacks(version: int, *, there: bool) -> None:
    unit = _one(_RESTARTS, manager=Manager(version=version))
    assert values(unit, "RestartSteps") == (["4"] if there else [])
    assert values(unit, "RestartMaxDelaySec") == (["5min"] if there else [])
    assert ("# RestartSteps= needs systemd 254" in unit) is not there


def test_no_watchdog_unless_the_recipe_asks() -> None:
    assert values(_one("exec: x"), "WatchdogSec") == []
    assert values(_one("exec: x, watchdog: 30s"), "WatchdogSec") == ["30s"]


def test_start_limits_can_be_reached_by_default() -> None:
    unit = _one("exec: x, restart: {delay: 30min, limit: 4}")
    assert values(unit, "StartLimitIntervalSec") == ["14400s"]


def test_devices_of_a_service_with_cards() -> None:
    units = rendered("services: {a: {exec: x, gpu: 1}}")
    unit = units["envbuild-x.a.service"]
    assert values(unit, "DevicePolicy") == ["closed"]
    assert values(unit, "DeviceAllow") == ["/dev/nvidiactl rw", "char-nvidia-uvm rw"]
    assert "envbuild-gpu-nodes.service" in values(unit, "Requires")
    assert "envbuild-gpu-nodes.service" in values(unit, "After")
    assert values(unit, "SupplementaryGroups") == []
    own = f"+/bin/sh {PREFIX}/.envbuild/cards.sh {PREFIX}/bin/python"
    words = "--job x.a --mode whole --affinity auto --count 1"
    assert values(unit, "ExecStartPre") == [f"{own} %n {words}"]
    assert values(unit, "ExecStopPost") == []  # a cgroup that is gone holds nothing
    assert values(unit, "EnvironmentFile")[1:] == ["-/run/envbuild/cards/%n.env"]
    nodes = units["envbuild-gpu-nodes.service"]
    assert values(nodes, "ExecStart")[0] == "/usr/bin/nvidia-modprobe -u -c 0"


def test_the_unit_of_the_device_nodes_is_the_same_for_all() -> None:
    name = "envbuild-gpu-nodes.service"
    text = "services: {a: {exec: x, gpu: 1}}"
    assert rendered(text)[name] == rendered(text, name="y")[name]


def test_no_card_no_device() -> None:
    for wish in ("0", "{count: 0}"):
        units = rendered(f"services: {{a: {{exec: x, gpu: {wish}}}}}")
        assert "envbuild-gpu-nodes.service" not in units
        assert values(units["envbuild-x.a.service"], "PrivateDevices") == ["yes"]


def test_a_unit_names_no_card_but_those_of_the_recipe() -> None:
    assert "/dev/nvidia0" not in _one("exec: x, gpu: {cards: [0]}")
    unit = _one("exec: x, gpu: {cards: [GPU-0f1e2d3c-0000, '1b:00.0']}")
    (taken,) = values(unit, "ExecStartPre")
    assert taken.endswith("--count 2 --card GPU-0f1e2d3c-0000 --card 1b:00.0")
    assert values(unit, "DeviceAllow") == ["/dev/nvidiactl rw", "char-nvidia-uvm rw"]


def test_cpus_of_the_recipe_are_not_replaced_by_those_near_the_card() -> None:
    unit = _one("exec: x, gpu: 1, limits: {cpus: 0-3}")
    assert "--affinity none" in values(unit, "ExecStartPre")[0]


def test_clients_of_mps_are_bound_to_their_server() -> None:
    text = """services:
  a: {exec: x, gpu: {memory: 40G, sm_share: 80%}}
  b: {exec: x, gpu: {memory: 8GB, isolation: mps}}
  c: {exec: x, gpu: {sm_share: 10%, cards: ["1"], isolation: mps}}
"""
    units = rendered(text)
    server = "envbuild-x._mps-any.service"
    assert {name for name in units if "_mps" in name} == {server, "envbuild-x._mps-1.service"}
    for name in ("a", "b"):
        unit = units[f"envbuild-x.{name}.service"]
        assert values(unit, "BindsTo") == [server]
        assert server in values(unit, "After")
        assert f"--server {server}" in values(unit, "ExecStartPre")[0]
        folder = "/run/envbuild-mps/x._mps-any"
        assert f'"CUDA_MPS_PIPE_DIRECTORY={folder}/pipe"' in values(unit, "Environment")
        assert values(unit, "ReadWritePaths") == [f"-{folder}"]
    assert '"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=80"' in values(
        units["envbuild-x.a.service"], "Environment"
    )
    unit = units[server]
    assert values(unit, "User") == ["eb-x"]
    assert values(unit, "RuntimeDirectory") == [
        "envbuild-mps/x._mps-any/pipe envbuild-mps/x._mps-any/log"
    ]
    assert values(unit, "ExecStop") == ["/usr/bin/nvidia-cuda-mps-control"]
    assert [line.split()[4] for line in values(unit, "ExecStopPost")] == ["back"]
    (give,) = values(units["envbuild-x.a.service"], "ExecStopPost")
    assert give.endswith(f"cards.py give %n --server {server}")
    assert "--card 1" in values(units["envbuild-x._mps-1.service"], "ExecStartPre")[0]


def test_instances_are_made_before_the_services_that_want_them() -> None:
    units = rendered("services: {a: {exec: x, gpu: {memory: 50%, isolation: mig}}}")
    unit = units["envbuild-x.a.service"]
    shares = "envbuild-gpu-shares.service"
    assert shares in values(unit, "Requires")
    assert shares in values(unit, "After")
    assert "--mode mig --affinity auto --memory 50%%" in values(unit, "ExecStartPre")[0].replace(
        '"', ""
    )
    assert values(units[shares], "TimeoutStartSec") == ["300"]
    assert values(units[shares], "After")[0] == "envbuild-gpu-nodes.service"


def test_a_user_has_no_ledger_of_cards() -> None:
    units = rendered("services: {a: {exec: x, gpu: 1}}", manager=Manager(scope="user"))
    assert "cards.py" not in units["envbuild-x.a.service"]


@pytest.mark.parametrize(
    ("wish", "what"),
    [
        ("memory: 50%", "a limit under MPS is an amount"),
        ("sm_share: 130%", "at most 100%"),
        ("memory: infinity", "no card has that much"),
    ],
)
def test_shares_that_cannot_be(wish: str, what: str) -> None:
    with pytest.raises(RecipeError) as refused:
        rendered(f"services: {{a: {{exec: x, gpu: {{{wish}}}}}}}")
    assert what in f"{refused.value.message}{refused.value.details}"


def test_two_users_on_one_mps_server_are_refused() -> None:
    text = """services:
  a: {exec: x, user: a, gpu: {isolation: mps}}
  b: {exec: x, user: b, gpu: {isolation: mps}}
"""
    with pytest.raises(RecipeError, match="one user at a time"):
        rendered(text)
    apart = text.replace("user: a, gpu: {", "user: a, gpu: {cards: [0], ")
    assert rendered(apart.replace("user: b, gpu: {", "user: b, gpu: {cards: [1], "))


def test_a_secret_is_in_no_unit() -> None:
    unit = _one("exec: x, credentials: {token: /etc/credentials/token}")
    assert values(unit, "LoadCredential") == ["token:/etc/credentials/token"]


def test_kinds() -> None:
    units = rendered("""services:
  once: {exec: x, kind: oneshot}
  daily: {exec: x, kind: timer, schedule: daily}
  asked: {exec: x, kind: socket, listen: [8000, /run/x.sock]}
  worker: {exec: "work --number %i", kind: template, environment: {N: "%i"}, write: [/srv/%i]}
  after: {exec: x, after: [once], requires: [asked]}
""")
    assert sorted(units) == [
        "envbuild-x.after.service",
        "envbuild-x.asked.service",
        "envbuild-x.asked.socket",
        "envbuild-x.daily.service",
        "envbuild-x.daily.timer",
        "envbuild-x.once.service",
        "envbuild-x.slice",
        "envbuild-x.worker@.service",
    ]
    assert values(units["envbuild-x.once.service"], "Type") == ["oneshot"]
    assert values(units["envbuild-x.daily.timer"], "OnCalendar") == ["daily"]
    assert values(units["envbuild-x.asked.socket"], "ListenStream") == ["8000", "/run/x.sock"]
    worker = units["envbuild-x.worker@.service"]
    assert values(worker, "ExecStart") == [f'{PREFIX}/bin/work --number "%i"']
    assert '"N=%i"' in values(worker, "Environment")
    assert values(worker, "ReadWritePaths") == ['"/srv/%i"']
    after = units["envbuild-x.after.service"]
    assert values(after, "Requires") == ["envbuild-x.asked.socket"]
    assert values(after, "After") == ["envbuild-x.asked.socket", "envbuild-x.once.service"]
    assert values(units["envbuild-x.once.service"], "WantedBy") == []
    assert values(after, "WantedBy") == ["multi-user.target"]


def test_what_a_network_needs() -> None:
    unit = _one("exec: x, after: [network-online.target]")
    assert values(unit, "Wants") == ["network-online.target"]
    assert values(_one("exec: x, network: none"), "PrivateNetwork") == ["yes"]
    assert values(_one("exec: x, network: loopback"), "IPAddressAllow") == ["localhost"]


def test_readiness() -> None:
    port = _one("exec: x, readiness: {kind: port, port: 80, timeout: 9s}")
    assert values(port, "ExecStartPost") == [
        f"{PREFIX}/bin/python -I {PREFIX}/.envbuild/ready.py port 80"
    ]
    assert values(port, "TimeoutStartSec") == ["9s"]
    command = _one("exec: x, readiness: {kind: command, command: curl -f 'a b'}")
    assert values(command, "ExecStartPost") == [
        f'{PREFIX}/bin/python -I {PREFIX}/.envbuild/ready.py command {PREFIX}/bin/curl -f "a b"'
    ]
    notify = _one("exec: x, readiness: {kind: notify}")
    assert values(notify, "Type") == ["notify"]
    assert values(notify, "TimeoutStartSec") == ["300s"]


def test_what_lies_in_a_home_is_shown() -> None:
    unit = _one("exec: x, working_directory: /home/t/job, read: [/home/t/data, /data]")
    assert values(unit, "ProtectHome") == ["tmpfs"]
    assert values(unit, "BindReadOnlyPaths") == ["/home/t/job", "/home/t/data"]
    assert values(unit, "ReadOnlyPaths") == ["/data"]
    written = _one("exec: x, working_directory: /home/t/job/a, write: [/home/t/job]")
    assert values(written, "BindPaths") == ["/home/t/job"]
    assert values(written, "BindReadOnlyPaths") == []
    assert values(_one("exec: x"), "ProtectHome") == ["yes"]


def test_limits() -> None:
    units = rendered("""services:
  a:
    exec: x
    limits:
      cpu_weight: 200
      cpu_quota: 250%
      cpus: 0-3
      memory_nodes: "0"
      memory_high: 4G
      memory_max: 5GB
      memory_swap_max: 0
      io_weight: 50
      io_read_bandwidth: {"/data x": 2G}
      io_write_bandwidth: {/data: 500MB/s}
      tasks_max: 64
      locked_memory: 1G
slice: {memory_max: 50%}
""")
    unit = units["envbuild-x.a.service"]
    expected = {
        "CPUWeight": "200",
        "CPUQuota": "250%",
        "AllowedCPUs": "0-3",
        "AllowedMemoryNodes": "0",
        "MemoryHigh": "4G",
        "MemoryMax": "5G",
        "MemorySwapMax": "0",
        "IOWeight": "50",
        "IOReadBandwidthMax": '"/data x" 2G',
        "IOWriteBandwidthMax": "/data 500M",
        "TasksMax": "64",
        "LimitMEMLOCK": "1G",
        "Slice": "envbuild-x.slice",
    }
    assert {name: values(unit, name) for name in expected} == {
        name: [value] for name, value in expected.items()
    }
    assert values(units["envbuild-x.slice"], "MemoryMax") == ["50%"]


def test_a_slice_without_services_renders_alone() -> None:
    assert list(rendered("slice: {tasks_max: 8}")) == ["envbuild-x.slice"]
    assert rendered("description: nothing") == {}


def test_a_users_manager() -> None:
    user = Manager(scope="user")
    unit = _one("exec: x, gpu: 1", manager=user)
    assert values(unit, "WantedBy") == ["default.target"]
    for directive in ("DeviceAllow", "DevicePolicy", "User", "DynamicUser", "ProtectSystem"):
        assert values(unit, directive) == []
    for wrong in ("after: [network-online.target]", "requires: [multi-user.target]", "user: u"):
        with pytest.raises(RecipeError, match=r"x\.yaml:2:.*a user's manager"):
            _one(f"exec: x, {wrong}", manager=user)


def test_services_and_slice_make_no_lock_stale() -> None:
    plain = loads("name: x\npython: 3.11", source="x.yaml").recipe
    more = "name: x\npython: 3.11\nservices: {a: {exec: x}}\nslice: {cpu_quota: 50%}"
    assert solve_digest(loads(more, source="x.yaml").recipe) == solve_digest(plain)


def test_a_template_of_the_site(tmp_path: Path) -> None:
    text = '{% extends "shipped/service.j2" %}\n{% block service %}\nNice=5\n{% endblock %}\n'
    (tmp_path / "service.j2").write_text(text)
    unit = rendered("services: {a: {exec: x}}", site=tmp_path)["envbuild-x.a.service"]
    assert values(unit, "Nice") == ["5"]
    assert values(unit, "KillMode") == ["mixed"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ nothing }}", "'nothing' is undefined"),
        ('{{ "a\\nUser=root" }}', "a value may not hold a line end"),
        ("\n{% if %}", r"service\.j2:2: "),
    ],
)
def test_a_wrong_template_of_the_site(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "service.j2").write_text(text)
    with pytest.raises(InputError, match=said):
        rendered("services: {a: {exec: x}}", site=tmp_path)


def _one(fields: str, *, manager: Manager | None = None) -> str:
    units = rendered(f"services: {{a: {{{fields}}}}}\n", manager=manager)
    return units["envbuild-x.a.service"]
