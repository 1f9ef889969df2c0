"""`envbuild self`: what this installation and host can do."""

import locale
from dataclasses import asdict

import click

from envbuild import __version__
from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.findings import errors_of
from envbuild.pipeline import self_check
from envbuild.pipeline.self_check import Facts

_NEVER = "not asked; --network asks"


@options.group(
    "self",
    examples="""
    envbuild self check
    envbuild self check --network --json
    """,
)
def command() -> None:
    """Look after envbuild itself."""


@command.command(
    "check",
    examples="""
    envbuild self check
    envbuild self check --network --json
    """,
)
@click.option("--network", is_flag=True, help="Ask the mirrors and the index that are set.")
@options.json_option
@click.pass_obj
def check(here: Here, *, network: bool, as_json: bool) -> int:
    """Say what this installation and this host can do, and what is in the way.

    Exit code 0: nothing that matters is; 1: something is. Nothing is installed; what the store's
    file system can do is tried in the store, and nothing of that stays.
    """
    facts = self_check.look(
        here.store,
        here.access,
        search=here.environment.get("PATH", ""),
        encoding=locale.getencoding(),
        network=network,
    )
    findings = self_check.judge(facts)
    if as_json:
        output.print_json({**_data(facts), "findings": output.findings_json(findings)})
        return 1 if errors_of(findings) else 0
    output.result(_text(facts))
    return output.print_findings(here, findings)


def _data(facts: Facts) -> dict[str, object]:
    store = facts.store
    return {
        "envbuild": __version__,
        "engines": dict(facts.engines),
        "store": {
            "root": str(store.root),
            "format": store.format,
            "environments": store.environments,
            "file_system": store.file_system or None,
            "label": store.label,
            **(asdict(store.abilities) if store.abilities else {}),
        },
        "selinux": facts.confinement.selinux,
        "apparmor": facts.confinement.apparmor,
        "user_namespaces": facts.confinement.user_namespaces,
        "systemd": facts.systemd,
        "cgroup2": facts.cgroup2,
        "compilers": dict(facts.compilers),
        "encoding": facts.encoding,
        "proxies": dict(facts.proxies),
        "network": None if facts.reached is None else dict(facts.reached),
    }


def _text(facts: Facts) -> str:
    store, able = facts.store, facts.store.abilities
    what = [] if able is None else [
        *(name for name, has in (
            ("hard links", able.hard_links), ("reflinks", able.reflinks),
            ("locks", able.locks), ("programs", able.executes),
        ) if has),
        f"{output.bytes_text(able.free_bytes)} free",
    ]  # fmt: skip
    state = "not there yet" if store.format is None else f"format {store.format}"
    namespaces = {True: "yes", False: "no", None: "unknown"}[facts.confinement.user_namespaces]
    reached = [f"{url} ({problem or 'answers'})" for url, problem in (facts.reached or {}).items()]
    nothing = _NEVER if facts.reached is None else "no mirror and no index is set"
    rows = [
        ("envbuild", __version__),
        ("engines", ", ".join(f"{name} {told or '-'}" for name, told in facts.engines.items())),
        ("store", f"{store.root}, {state}, {store.environments} environments"),
        ("file system", ", ".join([store.file_system or "unknown", *what])),
        ("SELinux", facts.confinement.selinux or "off"),
        ("AppArmor", "on" if facts.confinement.apparmor else "off"),
        ("user namespaces", namespaces),
        ("systemd", "runs this host" if facts.systemd else "does not run this host"),
        ("cgroups", "version 2" if facts.cgroup2 else "not version 2"),
        ("compilers", ", ".join(facts.compilers.values()) or "none"),
        ("text", facts.encoding),
        ("proxies", ", ".join(f"{name}={url}" for name, url in facts.proxies.items()) or "none"),
        ("network", ", ".join(reached) or nothing),
    ]
    return output.mask(output.table(("WHAT", "FOUND"), rows))
