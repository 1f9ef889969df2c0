"""Link scripts: named and not run, or run where the recipe says so, confined to the generation."""

from pathlib import Path

import pytest
from integration.creating import Creator, codes, damage, order
from integration.packages import File, Made, make_package

from envbuild.errors import ToolError
from envbuild.findings import Severity
from envbuild.store import verify
from envbuild.tools import confine


@pytest.fixture
def creator(tmp_path: Path) -> Creator:
    return Creator(root=tmp_path / "store")


def scripted(tmp_path: Path, script: str, name: str = "postl") -> Made:
    files = {
        f"bin/.{name}-post-link.sh": File(content=script.encode(), mode=0o755),
        f"share/{name}.txt": File(content=b"packaged\n"),
        f"share/{name}.old": File(content=b"old\n"),
    }
    return make_package(tmp_path / "channel", name, content=files)


def test_it_is_not_run_where_the_recipe_does_not_name_the_package(
    creator: Creator, tmp_path: Path
) -> None:
    made = scripted(tmp_path, 'touch "$PREFIX/made"\n')
    other = scripted(tmp_path, "exit 0\n", "other")
    created = creator.create(order([made, other], link_scripts=("other",)))
    found = [(one.code, one.severity, one.where) for one in created.manifest.findings]
    assert found == [
        ("link-script-run", Severity.NOTE, "bin/.other-post-link.sh"),
        ("link-script-not-run", Severity.WARNING, "bin/.postl-post-link.sh"),
    ]
    assert created.manifest.findings[1].hint == "if postl needs it: link_scripts: [postl]"
    assert not (created.generation.prefix / "made").exists()
    assert damage(created) == []


def test_what_it_writes_is_recorded_and_reaches_no_other_generation(
    creator: Creator, tmp_path: Path
) -> None:
    script = (
        'echo "$PKG_NAME $PKG_VERSION" > "$PREFIX/share/new.txt"\n'
        'echo more >> "$PREFIX/share/postl.txt"\n'
        'rm "$PREFIX/share/postl.old"\n'
        'echo "$HOME" > "$TMPDIR/scratch" && echo said\n'
    )
    made = scripted(tmp_path, script)
    before = creator.create(order([made]))
    after = creator.create(order([made], environment_digest="cd" * 32, link_scripts=("postl",)))
    (finding,) = after.manifest.findings
    assert (finding.code, finding.severity) == ("link-script-run", Severity.NOTE)
    assert finding.why == "it wrote share/new.txt, share/postl.old, share/postl.txt"
    share = after.generation.prefix / "share"
    assert (share / "new.txt").read_text() == "postl 1.0\n"
    assert (share / "postl.txt").read_text() == "packaged\nmore\n"
    said = [(one.code, one.severity, one.where) for one in verify.verify(after.generation)]
    assert said == [("record-differs", Severity.WARNING, "share/postl.txt")]
    assert damage(before) == []
    log = creator.place.logs / f"{after.generation.identifier}.log"
    assert "said" in log.read_text()
    again = creator.create(order([made]), reinstall=True)
    assert (again.generation.prefix / "share/postl.txt").read_text() == "packaged\n"
    assert damage(again) == []


@pytest.mark.skipif(confine.version() == 0, reason="this kernel has no Landlock")
@pytest.mark.parametrize(
    "act",
    [
        'echo x > "{outside}/new"',
        'echo x >> "{outside}/file"',
        'rm "{outside}/file"',
        'ln "{outside}/file" "$PREFIX/share/file"',
        'mv "{outside}/file" "$PREFIX/share/file"',
        'echo x >> "{cache}/share/first.txt"',
        'echo x >> "{other}/share/first.txt"',
    ],
)
def test_it_can_write_nowhere_else(creator: Creator, tmp_path: Path, act: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine\n")
    first = creator.create(order([scripted(tmp_path, "exit 0\n", "first")]))
    (text,) = creator.place.store.package_cache.glob("first-*/share/first.txt")
    action = act.format(outside=outside, cache=text.parents[1], other=first.generation.prefix)
    made = scripted(tmp_path, f"{action}\n")
    with pytest.raises(ToolError, match="exit status"):
        creator.create(order([made], link_scripts=("postl",)))
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "mine\n"
    assert creator.place.current.resolve() == first.generation.prefix
    assert damage(first) == []


def test_one_that_fails_leaves_what_was(creator: Creator, tmp_path: Path) -> None:
    good = creator.create(order([scripted(tmp_path, "exit 0\n", "good")]))
    bad = scripted(tmp_path, "echo this is why >&2; exit 7\n", "bad")
    with pytest.raises(ToolError, match="exit status 7") as caught:
        creator.create(order([bad], link_scripts=("bad",)))
    assert "this is why" in caught.value.details
    assert creator.place.current.resolve() == good.generation.prefix
    assert codes(creator.create(order([bad]))) == ["link-script-not-run"]


def test_without_landlock_the_finding_says_that_nothing_confined_it(
    creator: Creator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confine, "version", lambda: 0)
    created = creator.create(order([scripted(tmp_path, "exit 0\n")], link_scripts=("postl",)))
    (finding,) = created.manifest.findings
    assert (finding.code, finding.severity) == ("link-script-run", Severity.WARNING)
    assert finding.why == (
        "it wrote nothing; this kernel has no Landlock, so nothing kept it from writing elsewhere"
    )
