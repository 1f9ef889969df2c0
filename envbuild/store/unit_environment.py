"""What the services of a generation find in it: `units.env`, and the scripts that they run."""

from pathlib import Path
from typing import Final

from envbuild.store.environment import Environment

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What systemd gives a service (systemd.exec(5), `$PATH`), both places where /sbin is apart."""
SCRIPTS: Final = {
    name: Path(__file__).with_name(name).read_text()
    for name in ("cards.py", "cards.sh", "compute_mode.py", "may_start.sh", "ready.py")
}
"""What lies in each generation beside it, by name."""
_ESCAPED: Final = {ord(character): f"\\{character}" for character in '"\\`$'}


def dumps(environment: Environment) -> str:
    r"""Return what activation sets as systemd reads it (`EnvironmentFile=`).

    Within double quotes a backslash escapes `"`, `\`, a backtick and `$`; everything else, line
    ends too, stands for itself, and nothing is expanded (systemd 252, src/basic/env-file.c).
    """
    applied = environment.apply({"PATH": DEFAULT_PATH})
    return "".join(
        f'{name}="{value.translate(_ESCAPED)}"\n' for name, value in sorted(applied.items())
    )
