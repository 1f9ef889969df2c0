"""What activation scripts changed, told apart: values, and entries added to lists."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from envbuild.errors import StoreError, ToolFailed
from envbuild.store import activation
from envbuild.store.environment import Environment, dumps, loads
from envbuild.tools.run import Completed


class Bash:
    """Answers as the shell would whose scripts made these changes."""

    def __init__(self, changes: Mapping[str, str], stderr: str = "", *, ends: bool = False) -> None:
        self.changes = changes
        self.stderr = stderr
        self.ends = ends
        self.environment: Mapping[str, str] = {}

    def __call__(self, argv: Sequence[object], *, env: Mapping[str, str], **_: object) -> Completed:
        self.environment = env
        after = {
            **env,
            **{name: value.replace("{PATH}", env["PATH"]) for name, value in self.changes.items()},
        }
        text = "ENVBUILD-ACTIVATED\0" + "".join(f"{k}={v}\0" for k, v in after.items())
        out = "" if self.ends else text
        return Completed(argv=tuple(map(str, argv)), status=0, stdout=out, stderr=self.stderr)


def compute(
    prefix: Path, bash: Bash | None = None, *, compiler: str | None = None
) -> tuple[Environment, list[str]]:
    if bash is not None:
        folder = prefix / "etc/conda/activate.d"
        folder.mkdir(parents=True)
        (folder / "a.sh").write_text("")
    environment, findings = activation.compute(
        prefix,
        name="demo",
        platform="linux-64",
        compiler=compiler,
        run=bash or Bash({}),
    )
    return environment, [finding.code for finding in findings]


def test_without_scripts_conda_variables_and_path(tmp_path: Path) -> None:
    environment, findings = compute(tmp_path)
    assert environment.set == {
        "CONDA_PREFIX": f"{tmp_path}",
        "CONDA_DEFAULT_ENV": "demo",
        "CONDA_PROMPT_MODIFIER": "(demo) ",
        "CONDA_SHLVL": "1",
    }
    assert environment.prepend == {"PATH": (f"{tmp_path}/bin",)}
    assert environment.unset == ("PYTHONHOME", "PYTHONPATH")
    assert findings == []


@pytest.mark.parametrize(
    ("value", "entries"),
    [
        ("/x/bin:{PATH}", ("/x/bin",)),
        ("{PATH}:/x/bin", ("/x/bin",)),
        ("/x:/y:{PATH}:/z", ("/x", "/y", "/z")),
    ],
)
def test_what_is_added_to_path_stands_before_it(
    tmp_path: Path, value: str, entries: tuple[str, ...]
) -> None:
    environment, _ = compute(tmp_path, Bash({"PATH": value}))
    assert environment.prepend["PATH"] == (*entries, f"{tmp_path}/bin")
    assert "PATH" not in environment.set


def test_values_lists_and_what_a_shell_changes_itself(tmp_path: Path) -> None:
    bash = Bash(
        {
            "TEST": "a b\nc",
            "X_PATH": "/x:",
            "PLAIN_PATH": "/y",
            "_": "env",
            "PWD": "/",
            "SHLVL": "2",
            "BASH_FUNC_f%%": "() { :; }",
        }
    )
    environment, _ = compute(tmp_path, bash)
    assert environment.set["TEST"] == "a b\nc"
    assert environment.set["PLAIN_PATH"] == "/y"
    assert environment.prepend["X_PATH"] == ("/x",)
    assert {"_", "PWD", "SHLVL", "BASH_FUNC_f%%", "HOME", "LANG"}.isdisjoint(environment.set)


def test_the_scripts_see_no_variable_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_BUILDER", "x")
    bash = Bash({})
    compute(tmp_path, bash)
    assert "SECRET_OF_BUILDER" not in bash.environment
    assert bash.environment["CONDA_PREFIX"] == f"{tmp_path}"


def test_a_script_that_fails_is_named(tmp_path: Path) -> None:
    script = tmp_path / "etc/conda/activate.d/a.sh"
    _, findings = compute(tmp_path, Bash({}, stderr=f"noise\n{script}: status 3\n"))
    assert findings == ["activation-script-failed"]


def test_a_script_that_ends_its_shell_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="ended their shell with status 0: etc"):
        compute(tmp_path, Bash({}, ends=True))


def test_deactivation_scripts_are_noted(tmp_path: Path) -> None:
    folder = tmp_path / "etc/conda/deactivate.d"
    folder.mkdir(parents=True)
    (folder / "d.sh").write_text("")
    assert compute(tmp_path)[1] == ["deactivation-script"]


def test_variables_that_packages_and_the_state_declare(tmp_path: Path) -> None:
    (tmp_path / "etc/conda/env_vars.d").mkdir(parents=True)
    (tmp_path / "etc/conda/env_vars.d/p.json").write_text('{"A": "1", "B": "1"}')
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/state").write_text('{"version": 1, "env_vars": {"B": "2"}}')
    environment, _ = compute(tmp_path)
    assert (environment.set["A"], environment.set["B"]) == ("1", "2")


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
def test_damaged_variables_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "etc/conda/env_vars.d").mkdir(parents=True)
    (tmp_path / "etc/conda/env_vars.d/p.json").write_text(text)
    with pytest.raises(StoreError, match="does not hold variables"):
        compute(tmp_path)


def test_the_compiler_is_the_prefix_s_own_or_a_name(tmp_path: Path) -> None:
    environment, _ = compute(tmp_path, compiler="gcc 12")
    assert [environment.set[name] for name in ("CC", "CXX", "CUDAHOSTCXX")] == [
        "gcc-12",
        "g++-12",
        "g++-12",
    ]
    (tmp_path / "bin").mkdir()
    for tool in ("gcc", "g++"):
        (tmp_path / f"bin/x86_64-conda-linux-gnu-{tool}").touch()
    environment, _ = compute(tmp_path, compiler="gcc 12")
    assert environment.set["CC"] == f"{tmp_path}/bin/x86_64-conda-linux-gnu-gcc"
    assert environment.set["CUDAHOSTCXX"] == f"{tmp_path}/bin/x86_64-conda-linux-gnu-g++"
    environment, _ = compute(tmp_path, compiler="clang 17")
    assert (environment.set["CC"], environment.set["CXX"]) == ("clang-17", "clang++-17")


def test_applying_joins_with_what_is_inherited() -> None:
    environment = Environment(set={"A": "1"}, prepend={"PATH": ("/p/bin",), "X": ("/x",)})
    result = environment.apply({"PATH": "/bin", "PYTHONPATH": "/evil", "A": "0"})
    assert result == {"PATH": "/p/bin:/bin", "X": "/x", "A": "1"}
    assert json.loads(dumps(environment)) == {
        "version": 1,
        "set": {"A": "1"},
        "prepend": {"PATH": ["/p/bin"], "X": ["/x"]},
        "unset": ["PYTHONHOME", "PYTHONPATH"],
    }
    assert loads(dumps(environment)) == environment
