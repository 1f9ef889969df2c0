"""`envbuild kernel`: let Jupyter start an environment's Python."""

import sys
from pathlib import Path

import click

from envbuild.cli import options, output
from envbuild.cli.context import Here
from envbuild.errors import StoreError
from envbuild.store import kernel, present, use
from envbuild.store.layout import Place


@options.command(
    "kernel",
    examples="""
    envbuild kernel h100-pt24
    envbuild kernel h100-pt24 --sys-prefix --display-name "PyTorch 2.4"
    envbuild kernel h100-pt24 --remove
    """,
)
@options.environment_argument()
@click.option("--user", is_flag=True, help="For this user (the default).")
@click.option(
    "--prefix",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="In DIR/share/jupyter: of the environment that Jupyter itself runs in.",
)
@click.option("--sys-prefix", is_flag=True, help="Where the Python lies that runs envbuild.")
@click.option("--name", "kernel_name", metavar="KERNEL", help="Default: envbuild-NAME.")
@click.option("--display-name", metavar="TEXT", help="What Jupyter shows.  [default: NAME]")
@click.option("--remove", is_flag=True, help="Remove the kernel instead.")
@options.json_option
@click.pass_obj
def command(  # noqa: PLR0913 - one argument an option
    here: Here,
    name: str,
    *,
    user: bool,
    prefix: Path | None,
    sys_prefix: bool,
    kernel_name: str | None,
    display_name: str | None,
    remove: bool,
    as_json: bool,
) -> None:
    """Let Jupyter start an environment's Python; the environment must hold ipykernel.

    A kernel runs in the generation that is current when it is started.
    """
    if user + sys_prefix + (prefix is not None) > 1:
        message = "--user, --prefix and --sys-prefix cannot be used together"
        raise click.UsageError(message)
    if sys_prefix:
        prefix = Path(sys.prefix)
    data = _user_data(here) if prefix is None else prefix.absolute() / "share/jupyter"
    folder = kernel.folder(data, kernel_name or f"envbuild-{name}")
    try:
        if remove:
            kernel.remove(name, folder)
            argv = None
        else:
            place = present.found(here.stores, name)
            spec = kernel.install(
                use.chosen(place, None),
                folder,
                envbuild=_envbuild(place),
                display_name=display_name or name,
            )
            argv = spec["argv"]
    except OSError as error:
        message = f"{error.filename or folder}: {error.strerror}"
        raise StoreError(message, hint="--prefix DIR puts it elsewhere") from error
    if as_json:
        output.print_json({"name": name, "kernel": folder.name, "path": str(folder), "argv": argv})
    else:
        output.result(f"removed {folder}" if remove else str(folder))


def _envbuild(place: Place) -> list[str]:
    """Return how a kernel starts this envbuild: with no module of the notebook's folder (`-P`)."""
    return [sys.executable, "-P", "-m", "envbuild", "--store", str(place.store.root)]


def _user_data(here: Here) -> Path:
    """Return Jupyter's data folder of the user (jupyter_core.paths.jupyter_data_dir)."""
    told = here.environment.get("JUPYTER_DATA_DIR")
    if told:
        return Path(told).absolute()
    data = here.environment.get("XDG_DATA_HOME") or here.home / ".local/share"
    return Path(data) / "jupyter"
