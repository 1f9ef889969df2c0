"""The file of variables that services of a generation read, and the script that waits for them."""

from pathlib import Path

from envbuild.store import ready, unit_environment
from envbuild.store.environment import Environment


def test_activation_as_systemd_reads_it() -> None:
    environment = Environment(
        set={"A": 'say "hi" $HOME `x` \\', "B": "one\ntwo"},
        prepend={"PATH": ("/p/bin",), "XPATH": ("/a", "/b")},
    )
    assert unit_environment.dumps(environment) == (
        'A="say \\"hi\\" \\$HOME \\`x\\` \\\\"\n'
        'B="one\ntwo"\n'
        'PATH="/p/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\n'
        'XPATH="/a:/b"\n'
    )


def test_the_script_is_the_module() -> None:
    assert Path(ready.__file__).read_text() == unit_environment.SCRIPTS["ready.py"]
    assert "envbuild" not in [
        line.split()[1]
        for line in unit_environment.SCRIPTS["ready.py"].splitlines()
        if line.startswith(("import ", "from "))
    ]
