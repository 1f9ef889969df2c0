"""`envbuild verify`: compare every installed file with its digest."""

import click

from envbuild.cli import options, output, progress
from envbuild.cli.context import Here
from envbuild.findings import errors_of
from envbuild.store import manifest, present, use, verify


@options.command(
    "verify",
    examples="""
    envbuild verify h100-pt24
    envbuild verify h100-pt24 --generation 3f9a --json
    """,
)
@options.generation_option
@options.environment_argument()
@options.json_option
@click.pass_obj
def command(here: Here, name: str, generation: str | None, *, as_json: bool) -> int:
    """Compare every installed file with its digest; every difference is named.

    Exit code 0: as it was installed; 1: it differs.
    """
    chosen = use.chosen(present.existing(here.store, name), generation)
    with progress.shown(here) as shown:
        findings = verify.verify(chosen, progress=shown)
    made = manifest.read(chosen)
    if as_json:
        output.print_json(
            {
                "name": name,
                "generation": chosen.identifier,
                "files": made.file_count,
                "bytes": made.file_bytes,
                "findings": output.findings_json(findings),
            }
        )
        return 1 if errors_of(findings) else 0
    code = output.print_findings(here, findings)
    if code:
        output.next_step(here, f"envbuild create {name} --reinstall")
    else:
        size = output.bytes_text(made.file_bytes)
        text = f"{name}: {made.file_count} files ({size}) are as they were installed"
        output.result(f"{text}, generation {chosen.identifier}")
    return code
