"""`envbuild wheel rebuild`: building wheels anew."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from envbuild.cli import complete, options, output
from envbuild.cli.context import Here
from envbuild.errors import LockError, UsageProblem

if TYPE_CHECKING:
    from envbuild.pipeline.bench import Site
    from envbuild.pipeline.rebuilding import Outcome
    from envbuild.wheel.model import Plan, Rebuild

_OWN = ("HOME", "SSH_AUTH_SOCK", "XDG_CONFIG_HOME", "RUSTUP_HOME")


@options.command(
    "rebuild",
    examples="""
    envbuild wheel rebuild rebuild-demo
    envbuild wheel rebuild rebuild-demo kiwisolver --verify-reproducible
    envbuild wheel rebuild torch-from-source --dry-run
    """,
)
@click.argument("name", shell_complete=complete.recipes)
@click.argument("packages", metavar="[PACKAGE…]", nargs=-1)
@click.option(
    "--verify-reproducible",
    "verify",
    is_flag=True,
    help="Build each twice, in different folders, and compare the bytes; exit code 1 if they "
    "differ.",
)
@click.option("--again", is_flag=True, help="Build also what the wheelhouse has already.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Compilers at a time; by default as many as cores and memory allow.  [env: MAX_JOBS]",
)
@click.option(
    "--cuda-archs",
    metavar="LIST",
    help="Build for these compute capabilities (`7.5;9.0+PTX`) instead of the recipe's.",
)
@click.option("--fetch", is_flag=True, help="Let the plan fetch and read what is nowhere.")
@options.dry_run_option
@options.json_option
@click.pass_obj
def rebuild(  # noqa: PLR0913 - the command's options
    here: Here,
    name: str,
    packages: tuple[str, ...],
    *,
    verify: bool,
    again: bool,
    jobs: int | None,
    cuda_archs: str | None,
    fetch: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Build the wheels that `envbuild wheel plan` says need a rebuild, and keep them.

    The build has no network and nothing of this shell but PATH. What was built is read again,
    imported in a fresh environment, and put into the store's wheelhouse with its provenance;
    `envbuild lock --prefer-rebuilt` takes it from there.
    """
    from envbuild.cli import planning, progress
    from envbuild.pipeline import rebuilding
    from envbuild.pipeline.rebuilding import Wish

    wish = Wish(
        packages=packages,
        again=again,
        verify=verify,
        archs=None if cuda_archs is None else _archs(cuda_archs),
        max_jobs=_max_jobs(here, jobs),
    )
    plan = planning.plan_of(here, name, here.platform, fetch=fetch)
    rebuilds, said = rebuilding.chosen(plan, wish)
    output.print_findings(here, said)
    if dry_run or not rebuilds:
        _show_plan(plan, rebuilds, as_json=as_json)
        return
    site = _site(here, name)
    done: list[Outcome] = []
    with progress.shown(here) as shown:
        done += rebuilding.rebuild(rebuilds, replace(site, progress=shown), wish)
    if as_json:
        output.print_json({"rebuilt": [_outcome_json(one) for one in done]})
        return
    for outcome in done:
        output.result(_told(outcome))
        output.print_findings(here, outcome.findings)
    locked = {digest for one in site.half.pip for digest in one.hashes}
    if all(outcome.kept.sha256 in locked for outcome in done):
        output.result(f"just what the lock has; next: envbuild create {name}")
    else:
        output.result(f"to take them into the lock: envbuild lock --prefer-rebuilt {name}")


def _archs(text: str) -> tuple[str, ...]:
    from envbuild.recipe.words import cuda_arch

    try:
        return tuple(cuda_arch(part.strip()) for part in text.replace(",", ";").split(";"))
    except ValueError as error:
        message = f"--cuda-archs: {error}"
        raise UsageProblem(message, hint="write them as 8.9;9.0+PTX") from error


def _max_jobs(here: Here, option: int | None) -> tuple[int, str] | None:
    if option is not None:
        return option, "--jobs"
    told = here.environment.get("MAX_JOBS", "").strip()
    if not told:
        return None
    if not (told.isascii() and told.isdigit() and int(told) >= 1):
        message = f"MAX_JOBS is {told!r}, not a number from 1 on"
        raise UsageProblem(message, hint="set it to a number, or not at all")
    return int(told), "MAX_JOBS"


def _show_plan(plan: "Plan", rebuilds: Sequence["Rebuild"], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": one.name, "version": one.version, "source": str(one.source)}
            for one in rebuilds
        ]
        output.print_json({"would_rebuild": rows})
    elif not rebuilds and plan.unknown:
        names = ", ".join(dict.fromkeys(one.name for one in plan.unknown))
        output.result(
            f"{plan.name}: nothing needs a rebuild as far as it is known; {names} is not: "
            f"envbuild wheel rebuild {plan.name} --fetch"
        )
    elif not rebuilds:
        output.result(f"{plan.name}: nothing needs a rebuild; see envbuild wheel plan {plan.name}")
    else:
        table = [
            (
                one.name,
                one.version,
                one.toolchain.compiler,
                ";".join(one.cuda_archs),
                f"{one.source}",
            )
            for one in rebuilds
        ]
        heads = ("NAME", "VERSION", "COMPILER", "GPU CODE", "SOURCES")
        output.result(output.table(heads, table))


def _site(here: Here, name: str) -> "Site":
    """Return where rebuilds happen, as recipe and lock say."""
    from pathlib import Path

    from envbuild.channel import host
    from envbuild.cli import planning
    from envbuild.cli.wish import wish
    from envbuild.lock.digest import applying
    from envbuild.pipeline.bench import Site
    from envbuild.progress import Quiet
    from envbuild.recipe.targets import target
    from envbuild.solve.ask import sources

    loaded, lock = planning.locked(here, name)
    half = lock.for_platform(here.platform)
    if half is None:
        message = f"the lock of {name} has nothing for {here.platform}"
        raise LockError(message, source=name)
    python: Path | None = None
    version = next((one.version for one in half.conda if one.name == "python"), "3")
    if lock.host_python is not None:
        found = host.choose(lock.host_python, wish(here, None))
        python, version = found.path, found.version
    access = here.access
    return Site(
        store=here.store.resolved(),
        access=access,
        half=replace(half, pip=applying(half.pip, here.platform, python=version)),
        indexes=sources(loaded, cutoff=lock.cutoff, access=access),
        cutoff=lock.cutoff,
        target=target(loaded.recipe, here.platform),
        glibc=(os.confstr("CS_GNU_LIBC_VERSION") or "glibc 2.17").split()[-1],
        python=python,
        python_version=version,
        search=here.environment.get("PATH", ""),
        own={
            **access.environment,
            **{key: here.environment[key] for key in _OWN if key in here.environment},
            **{key: here.environment[key] for key in here.environment if key[:6] == "CARGO_"},
        },
        facts=here.facts,
        now=here.now,
        progress=Quiet(),
    )


def _outcome_json(outcome: "Outcome") -> dict[str, object]:
    kept = outcome.kept
    return {
        "name": kept.name,
        "version": str(kept.version),
        "file": f"{kept.path}",
        "sha256": kept.sha256,
        "built": outcome.made,
        "identical": outcome.identical,
        "findings": output.findings_json(outcome.findings),
    }


def _told(outcome: "Outcome") -> str:
    kept = outcome.kept
    if not outcome.made:
        return f"{kept.name} {kept.version}: in the wheelhouse already, {kept.path}"
    twice = ", twice the same bytes" if outcome.identical else ""
    return f"{kept.name} {kept.version}: built{twice}, {kept.path}"
