"""What CI does, to be done by hand: `nox`, or `nox -s lint`."""

import re
import tempfile
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "tests"]


@nox.session
def lint(session: nox.Session) -> None:
    """Style, types, layers."""
    session.install("-e", ".[lint,test]", "nox")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")
    session.run("mypy", "noxfile.py")
    session.run("lint-imports")


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """The unit tests, on each Python."""
    session.install("-e", ".[test]")
    session.run("pytest", "tests/unit", *session.posargs)


@nox.session
def integration(session: nox.Session) -> None:
    """Real engines, servers on localhost, PyPI."""
    session.install("-e", ".[test]")
    env = {"ENVBUILD_TEST_FAULTS": "all"}
    session.run("pytest", "tests/integration", *session.posargs, env=env)


@nox.session
def docs(session: nox.Session) -> None:
    """The site, in build/site; a broken link is an error."""
    session.install("-e", ".[docs]")
    # without --quiet: --strict counts the warnings that are logged
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def stress(session: nox.Session) -> None:
    """Mixed commands by four processes on one store, for an hour."""
    session.install("-e", ".[test]")
    env = {"ENVBUILD_STRESS_SECONDS": "3600"}
    session.run("pytest", "tests/integration/test_stress.py", *session.posargs, env=env)


@nox.session
def rebuilds(session: nox.Session) -> None:
    """Four real packages and a conda package rebuilt twice each; a table in build/rebuilds.xml."""
    session.install("-e", ".[test]")
    env = {"ENVBUILD_TEST_REBUILDS": "all"}
    told = ("--junit-xml", "build/rebuilds.xml", "-o", "junit_family=xunit1")
    tests = [f"tests/integration/test_rebuild_{what}.py" for what in ("packages", "conda", "ninja")]
    session.run("pytest", *tests, *told, *session.posargs, env=env)


@nox.session
def facts(session: nox.Session) -> None:
    """The facts against PyPI: every row read anew, twenty wheels read whole (10 GB)."""
    session.install("-e", ".[test]")
    env = {"ENVBUILD_TEST_FACTS": "all"}
    told = ("--junit-xml", "build/facts.xml", "-o", "junit_family=xunit1")
    session.run("pytest", "tests/integration/test_facts_pypi.py", *told, *session.posargs, env=env)


@nox.session
def kills(session: nox.Session) -> None:
    """Kill with -9 each command that changes a store, at every call that changes a file."""
    session.install("-e", ".[test]")
    env = {"ENVBUILD_KILLS": "all"}
    told = ("--junit-xml", "build/kills.xml", "-o", "junit_family=xunit1")
    names = ("cards_script", "kill_points", "signals", "slice_command")
    files = [f"tests/integration/test_{name}.py" for name in names]
    session.run("pytest", *files, *told, *session.posargs, env=env)


@nox.session
def shares(session: nox.Session) -> None:
    """The planner of shares: 10,000 random wishes on each card that has MIG."""
    session.install("-e", ".[test]")
    env = {"ENVBUILD_TEST_WISHES": "10000"}
    told = ("--junit-xml", "build/shares.xml", "-o", "junit_family=xunit1")
    files = ("tests/unit/shares/test_shares_plan.py",)
    session.run("pytest", *files, *told, *session.posargs, env=env)


@nox.session
def wheels(session: nox.Session) -> None:
    """Read real wheels from the field whole (2 GB, kept in build/wheels), and what nvcc makes."""
    session.install("-e", ".[test]")
    env = {"ENVBUILD_TEST_WHEELS": str(Path("build/wheels").resolve())}
    session.run("pytest", "tests/integration/test_wheels_real.py", *session.posargs, env=env)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Invent ELF files, fatbins and packages for the readers: `nox -s fuzz -- READER… [-runs=N]`.

    What reached new code lies in build/fuzz/READER, and an input that was a bug beside it.
    """
    session.install("-e", ".", "atheris>=3.0.0")
    options = [one for one in session.posargs if one.startswith("-")] or ["-max_total_time=600"]
    every = ("elf", "fatbin", "sparse", "deflated", "wheel", "conda", "tar", "lists")
    for reader in [one for one in session.posargs if not one.startswith("-")] or every:
        kept, told = Path("build/fuzz", reader), f"-artifact_prefix=build/fuzz/{reader}-"
        kept.mkdir(parents=True, exist_ok=True)
        session.run("python", "tests/fuzz/run.py", reader, str(kept), *options, told)


@nox.session
def cuts(session: nox.Session) -> None:
    """Power cuts in a machine: a hundred replayed of install and remove, of switch, three real."""
    session.install("-e", ".[test]")
    env = {"ENVBUILD_CUTS": "100"}
    told = ("--junit-xml", "build/cuts.xml", "-o", "junit_family=xunit1")
    session.run("pytest", "tests/system/test_cuts.py", *told, *session.posargs, env=env)


@nox.session
@nox.parametrize("suite", ["bookworm", "trixie"])
def system(session: nox.Session, suite: str) -> None:
    """In machines under qemu: Debian 12 (systemd 252), Debian 13 (257); as root."""
    session.install("-e", ".[test]")
    env = {"ENVBUILD_SYSTEM_SUITE": suite}
    told = ("--junit-xml", f"build/system-{suite}.xml", "-o", "junit_family=xunit1")
    session.run("pytest", "tests/system", *told, *session.posargs, env=env)


@nox.session
def services(session: nox.Session) -> None:
    """Install, switch and remove services under a systemd of their own; needs root."""
    session.install("-e", ".[test]")
    told = ("--junit-xml", "build/services.xml", "-o", "junit_family=xunit1")
    files = [f"tests/integration/test_units_{name}.py" for name in ("install", "mps")]
    session.run("pytest", *files, *told, *session.posargs, env={"ENVBUILD_SERVICES": "all"})


@nox.session
def programs(session: nox.Session) -> None:
    """Jupyter and PyTorch under the units that ship; root. 3 GB, kept in build/programs."""
    session.install("-e", ".[test]")
    told = ("--junit-xml", "build/programs.xml", "-o", "junit_family=xunit1")
    files = ("tests/integration/test_units_programs.py",)
    env = {"ENVBUILD_TEST_PROGRAMS": str(Path("build/programs").resolve())}
    session.run("pytest", *files, *told, *session.posargs, env=env)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel, install it elsewhere, use what it ships."""
    with tempfile.TemporaryDirectory() as folder:
        session.run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ".")
        (made,) = Path(folder).glob("*.whl")
        session.install(str(made))
        session.chdir(folder)
        said = session.run("envbuild", "--version", silent=True)
        if not re.fullmatch(r"envbuild [\w.]+\n", str(said)):
            session.error(f"envbuild --version said {said!r}")
        session.run("envbuild", "info")
        session.run("envbuild", "lock", "--check", "quickstart")
