"""Other tools' files: taken over, or refused with the line and the reason."""

from pathlib import Path

import pytest

from envbuild.errors import InputError
from envbuild.recipe.draft import Draft, taken_over, write
from envbuild.recipe.foreign import load, loads
from envbuild.recipe.load import loads as loads_recipe

HASH = "7aada352fb0c7f5538c4fafeddf314d3a6a92ee8e2b1de70482329e42de70301"


def problems_of(text: str, source: str) -> str:
    with pytest.raises(InputError) as caught:
        loads(text, source=source)
    return "\n".join([caught.value.message, *caught.value.problems])


def test_a_rendered_file_is_an_input_again() -> None:
    text = f"""\
channels: [conda-forge]
dependencies:
  - python=3.11
  - pip:
    - flit-core === 3.9.0 --hash=sha256:{HASH}
"""
    foreign = loads(text, source="environment.yml")
    assert foreign.python == "3.11"
    assert foreign.pypi == [f"flit-core === 3.9.0 --hash=sha256:{HASH}"]
    recipe = loads_recipe(
        write(taken_over(Draft(name="x"), foreign, origin="environment.yml")), source="x.yaml"
    ).recipe
    assert recipe.pypi == tuple(foreign.pypi)
    assert (recipe.python, recipe.channels, recipe.conda) == ("3.11", ("conda-forge",), ())


def test_an_environment_file() -> None:
    text = """\
name: old
channels: [conda-forge, nodefaults, defaults, https://x.test/c/]
platforms: [linux-64, osx-arm64]
dependencies:
  - python >=3.10,<3.13
  - numpy=1.26
  - nvidia::cuda-nvcc 12.4.*   # the compiler
  - pip
  - pip: ["rich # nice", rich, "--only-binary :all:"]
prefix: /opt/old
"""
    foreign = loads(text, source="e.yaml")
    assert foreign.python == ">=3.10,<3.13"
    assert foreign.channels == ["conda-forge", "https://x.test/c", "nvidia"]
    assert foreign.platforms == ["linux-64"]
    assert foreign.conda == ["numpy 1.26.*", "nvidia::cuda-nvcc 12.4.*", "pip"]
    assert foreign.pypi == ["rich"]
    assert [note.split(": ")[0] for note in foreign.notes] == [
        "e.yaml:2:37", "e.yaml:3:23", "e.yaml:7:5", "e.yaml:9:32",
    ]  # fmt: skip


def test_python_that_only_conda_can_say_stays_there() -> None:
    foreign = loads("dependencies: [python 3.11.* *_cpython]", source="e.yml")
    assert (foreign.python, foreign.conda) == (None, ["python 3.11.* *_cpython"])
    assert not foreign.wants_python
    assert foreign.channels == ["conda-forge"]
    assert "it names no channel; conda-forge is taken" in foreign.notes[0]
    assert loads("dependencies: [python, numpy]", source="e.yml").conda == ["numpy"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a", "e.yml:1:1: expected the mapping of an environment, found a list"),
        ("dependencies: a", "e.yml:1:15: expected a list of packages, found 'a'"),
        ("channels: {a: b}", "e.yml:1:11: expected a list of channels, found a mapping"),
        ("channels: [[a]]", "e.yml:1:12: expected one of the channels, found a list"),
        ("channels: [defaults]", "e.yml:1:12: 'defaults' stands for conda's configured channels"),
        ("channels: ['https://u:secret@x.test']", "e.yml:1:12: a login may not stand in a recipe"),
        ("variables: {A: b}", "e.yml:1:1: a recipe cannot take the key 'variables'"),
        ("dependancies: [a]", "did you mean dependencies?"),
        ("dependencies: [{npm: [x]}]", "e.yml:1:16: expected a package or 'pip:', found 'npm:'"),
        ("dependencies: [[x]]", "e.yml:1:16: expected a package or 'pip:', found a list"),
        ("dependencies: ['a ==', ./b.conda]", "e.yml:1:24: a path or an address cannot be locked"),
        ("dependencies: [pip: [-e ., 'a @ https://u:secret@x.test']]", "e.yml:1:28: a is asked"),
        ("dependencies: [a\n", "e.yml:2:1: not YAML"),
        ("a: &a [*a]", "the alias *a contains itself"),
        ("", "e.yml:1:1: the file is empty"),
    ],
)
def test_an_environment_file_that_cannot_be_taken(text: str, expected: str) -> None:
    problems = problems_of(text, "e.yml")
    assert expected in problems
    assert "secret" not in problems


def test_a_requirements_file() -> None:
    text = f"""\ufeff\
# made by a tool
--require-hashes
numpy==1.26.4 ; python_version < "3.13" \\
    --hash=sha256:{HASH} \\
    --hash=sha256:{"0" * 64}
    # via x
Rich>=13   # nice

rich>=13
flit-core === 3.9.0 \\
"""
    foreign = loads(text.replace("\n", "\r\n"), source="requirements.txt")
    assert foreign.pypi == [
        f'numpy==1.26.4 ; python_version < "3.13" --hash=sha256:{HASH} --hash=sha256:{"0" * 64}',
        "Rich>=13",
        "flit-core === 3.9.0",
    ]
    assert foreign.notes == ["requirements.txt:2:1: --require-hashes was left out"]
    assert foreign.wants_python


def test_a_requirements_file_that_cannot_be_taken() -> None:
    text = """\
-e .
-r other.txt
foo @ https://u:secret@x.test/y
--extra-index-url https://u:secret@x.test/simple
numpy
numpy \\
  <2
./here
git+ssh://git@x.test/a
a ; sys_platfrom == "linux"
b --hash=md5:0123
--pre
\x00
"""
    problems = problems_of(text, "r.txt")
    assert "secret" not in problems
    lines = [line for line in problems.splitlines() if line.startswith("r.txt:")][1:]
    assert [line.split(": ")[0] for line in lines] == [
        f"r.txt:{number}:1" for number in (1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13)
    ]
    assert "did you mean sys_platform?" in problems
    assert "give that file to --from itself" in problems


def test_load_says_what_is_wrong_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load(tmp_path / "none.txt")
    path = tmp_path / "r.txt"
    path.write_bytes(b"numpy\n\xff")
    with pytest.raises(InputError, match=r"r.txt:2:1: not UTF-8 text"):
        load(path)
    path.write_text("numpy")
    assert load(path).pypi == ["numpy"]
