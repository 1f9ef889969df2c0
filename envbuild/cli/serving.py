"""`envbuild units install`, `remove`, `status` and `logs`: units on this host."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from envbuild.cli import moved, options, output, patience, rendering
from envbuild.cli.context import Here
from envbuild.findings import errors_of

if TYPE_CHECKING:
    from envbuild.pipeline.serving import Prepared, Site
    from envbuild.units.status import Row


@options.command(
    "install",
    examples="""
    envbuild units install h100-pt24
    envbuild units install h100-pt24 --dry-run
    envbuild units install h100-pt24 --no-start
    envbuild units install jupyter --user
    """,
)
@options.recipe_argument
@click.option("--no-start", is_flag=True, help="Install and enable; start nothing.")
@rendering.restart_option
@options.dry_run_option
@patience.lock_timeout_option
@rendering.target_options
@click.pass_obj
def install(
    here: Here,
    /,
    name: str,
    *,
    no_start: bool,
    restart: Any,  # noqa: ANN401
    dry_run: bool,
    as_json: bool,
    **told: Any,  # noqa: ANN401
) -> int:
    """Install the units of a recipe's services, start them, and wait until they are ready.

    systemd reads the units first. They are written with what this host adds (a drop-in with the
    groups of device nodes), systemd is reloaded once, what is new is started, and what runs is
    restarted where a change needs it: limits reach it as it runs. Where a service does not come
    up everything is put back and the reason shown. Drop-ins of an administrator stay.
    """
    from envbuild.pipeline import serving

    site = site_of(here, user=told["user"])
    rendered = rendering.make(here, name, told, installed=True)
    with serving.alone(site, rendered.name, purpose="units install", who=moved.who(here)):
        serving.recover(site, rendered.name, store=here.store)
        prepared = serving.prepare(
            rendered,
            site,
            store=here.store,
            today=here.now().date(),
            start=not no_start,
            restart="never" if no_start else restart,
        )
        if errors_of(prepared.findings):
            _show(here, rendered.name, prepared, done=False, as_json=as_json)
            return 1
        if not dry_run:
            serving.carry_out(
                prepared,
                site,
                told=lambda text: output.say(here, text),
                rolling=restart == "rolling",
            )
    _show(here, rendered.name, prepared, done=not dry_run, as_json=as_json)
    return 0


@options.command(
    "remove",
    examples="""
    envbuild units remove h100-pt24
    envbuild units remove jupyter --user
    """,
)
@options.environment_argument()
@rendering.scope_option
@patience.lock_timeout_option
@options.json_option
@click.pass_obj
def remove(here: Here, name: str, *, user: bool, as_json: bool) -> None:
    """Stop the services of an environment and remove their units; the environment stays.

    Drop-ins of an administrator stay, and so does what services wrote (/var/lib/envbuild/NAME,
    /var/cache/envbuild/NAME).
    """
    from envbuild.pipeline import serving

    site = site_of(here, user=user)
    with serving.alone(site, name, purpose="units remove", who=moved.who(here)):
        serving.recover(site, name, store=here.store)
        gone = serving.remove(site, name)
    if as_json:
        output.print_json({"name": name, "folder": str(site.folder), "removed": list(gone)})
    else:
        for file in gone:
            output.result(f"{site.folder / file}: removed")


@options.command(
    "status",
    examples="""
    envbuild units status h100-pt24
    envbuild units status h100-pt24 --json
    """,
)
@options.environment_argument()
@rendering.scope_option
@options.json_option
@click.pass_obj
def status(here: Here, name: str, *, user: bool, as_json: bool) -> int:
    """Show what the units of an environment do, and why one does not run.

    Exit code 1: one has failed, or was refused by the check before its start.
    """
    from envbuild.pipeline.serving import installed
    from envbuild.units.status import rows

    site = site_of(here, user=user)
    found = rows(site.systemd, installed(site.folder, name))
    if as_json:
        output.print_json({"name": name, "units": [_row_data(row) for row in found]})
    else:
        headings = [
            "UNIT",
            "STATE",
            "SINCE",
            "RESTARTS",
            "MEMORY",
            "CPU",
            "PRESSURE",
            "CARDS",
            "WHY",
        ]
        output.result(output.table(headings, [_row_text(row) for row in found]))
    return 1 if any(row.bad for row in found) else 0


@options.command(
    "logs",
    examples="""
    envbuild units logs h100-pt24
    envbuild units logs h100-pt24 train -f
    envbuild units logs h100-pt24 train -n 100
    """,
)
@options.environment_argument()
@click.argument("service", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option(
    "-n", "--lines", metavar="N", type=click.IntRange(min=0), help="The last N lines only."
)
@rendering.scope_option
@click.pass_obj
def logs(
    here: Here, name: str, service: str | None, *, follow: bool, lines: int | None, user: bool
) -> None:
    """Show what services wrote, and what systemd said of them: journalctl, for their units."""
    from envbuild.errors import InputError, ToolMissing
    from envbuild.pipeline.serving import installed
    from envbuild.units import names

    site = site_of(here, user=user)
    units = [unit for unit in installed(site.folder, name) if not unit.endswith(".slice")]
    if service is not None:
        stem = names.stem(name, service)
        units = [unit for unit in units if unit.rpartition(".")[0].rstrip("@") == stem]
        if not units:
            message = f"{name} has no service {service!r} installed"
            raise InputError(message, source=name, hint=f"envbuild units status {name}")
    patterns = [unit.replace("@.", "@*.") for unit in units]
    argv = site.systemd.log_command(patterns, follow=follow, lines=lines)
    try:
        os.execvpe(argv[0], argv, dict(here.environment))  # noqa: S606 - no shell is wanted
    except FileNotFoundError as error:
        message = "journalctl: no such program"
        raise ToolMissing(message, argv=tuple(argv)) from error


def site_of(here: Here, *, user: bool) -> "Site":
    """Return where units are installed here.

    Raises:
        HostError: systemd does not run this machine, or the user has no manager.
    """
    from envbuild.pipeline.serving import Site
    from envbuild.tools.systemd import connect
    from envbuild.units.fits import Seat

    systemd = connect("user" if user else "system")
    seat = Seat(
        scope=systemd.scope,
        uid=os.geteuid(),
        user=here.user.partition(" ")[0],
        groups=tuple(os.getgroups()),
    )
    return Site(folder=rendering.unit_folder(here, user=user), systemd=systemd, seat=seat)


def _show(here: Here, name: str, prepared: "Prepared", *, done: bool, as_json: bool) -> None:
    plan = prepared.plan
    folder = plan.placing.folder
    if as_json:
        output.print_json(
            {
                "name": name,
                "folder": str(folder),
                "done": done,
                "findings": output.findings_json(prepared.findings),
                "units": [
                    {"name": one.unit, "change": one.change or None, "action": one.action or None}
                    for one in plan.changes()
                ],
                "running_as_before": list(plan.kept),
            }
        )
        return
    output.print_findings(here, prepared.findings, err=True)
    if errors_of(prepared.findings):
        return
    output.result(_summary(name, plan.changes(), done=done))
    if plan.kept:
        output.say(here, f"running as before: {', '.join(plan.kept)}")
    if done:
        output.next_step(here, f"envbuild units status {name}")


def _summary(name: str, changes: Sequence[Any], *, done: bool) -> str:
    if not changes:
        return f"{name}: its units are installed and run"
    written = ("installed", "removed") if done else ("to be installed", "to be removed")
    acted = {"start": "started", "restart": "restarted", "stop": "stopped"}
    lines: list[str] = []
    for one in changes:
        texts = []
        if one.change:
            texts.append(written[one.change == "left over"])
        if one.action:
            texts.append(acted[one.action] if done else f"to be {acted[one.action]}")
        lines.append(f"{one.unit}: {', '.join(texts)}")
    return "\n".join(lines)


def _row_text(row: "Row") -> list[str]:
    return [
        row.unit,
        row.state,
        "-" if row.since_s is None else output.duration_text(row.since_s),
        "-" if row.restarts is None else str(row.restarts),
        "-" if row.memory is None else output.bytes_text(row.memory),
        "-" if row.cpu_s is None else output.duration_text(row.cpu_s),
        _pressure_text(row.pressure),
        ",".join(map(str, row.cards)) or "-",
        row.why or "-",
    ]


def _pressure_text(pressure: Mapping[str, float]) -> str:
    """Return what is waited for at least one percent of the time."""
    waits = [f"{name} {share:.0f}%" for name, share in pressure.items() if share >= 1]
    return " ".join(waits) or ("0%" if pressure else "-")


def _row_data(row: "Row") -> dict[str, object]:
    return {
        "unit": row.unit,
        "state": row.state,
        "since_s": row.since_s,
        "restarts": row.restarts,
        "memory_bytes": row.memory,
        "cpu_s": row.cpu_s,
        "pressure_percent": dict(row.pressure) or None,
        "cards": list(row.cards),
        "why": row.why or None,
        "at_boot": row.at_boot,
        "pid": row.pid,
    }
