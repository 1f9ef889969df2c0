"""What lies in a prefix and what packages claim, and the comparison of both."""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from envbuild.errors import StoreError
from envbuild.store import check, installed, modes
from envbuild.store.check import Checked
from envbuild.store.installed import Owner
from envbuild.store.ledger import Ledger

SITE = "lib/python3.11/site-packages"


def hexed(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def declared(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"


class Prefix:
    """A prefix whose files are hard links to a cache beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "prefix"
        self.cache = root / "cache"
        self.ledger = Ledger(root / "ledger.sqlite")
        self.root.mkdir()
        self.cache.mkdir()

    def put(self, path: str, content: bytes, *, shared: bool = True, mode: int = 0o644) -> Path:
        to = self.root / path
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(content)
        to.chmod(mode)
        if shared:
            kept = self.cache / path
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.unlink(missing_ok=True)
            os.link(to, kept)
        return to

    def wheel(self, name: str, files: Mapping[str, bytes], *, more: str = "") -> None:
        folder = f"{name}-1.0.dist-info"
        files = {**files, f"{folder}/METADATA": b"M", f"{folder}/WHEEL": name.encode()}
        rows = "".join(f"{path},{declared(data)},{len(data)}\n" for path, data in files.items())
        for path, data in files.items():
            if not (self.root / SITE / path).exists():
                self.put(os.path.normpath(f"{SITE}/{path}"), data)
        record = f"{rows}{more}{folder}/RECORD,,\n"
        self.put(f"{SITE}/{folder}/RECORD", record.encode(), shared=False)

    def conda(self, name: str, paths: list[Mapping[str, object]], *, source: str = "") -> None:
        record = {
            "name": name,
            "fn": f"{name}.conda",
            "sha256": "0" * 64,
            "link": {"source": source or str(self.cache)},
            "paths_data": {"paths": paths},
        }
        self.put(f"conda-meta/{name}.json", json.dumps(record).encode(), shared=False)

    def owners(self) -> list[Owner]:
        seen = installed.walk(self.root)
        found = list(installed.conda_owners(self.root, seen))
        return [
            *found,
            *installed.wheel_owners(self.root, seen, self.ledger, apart_from=found),
        ]

    def check(self) -> tuple[Checked, int]:
        """Check as creation does; return also how many bytes were hashed."""
        hashed: list[int] = []
        owners = self.owners()
        known = self.ledger.trees([owner.package for owner in owners if owner.is_conda])
        seen = installed.walk(self.root)
        found = check.check(self.root, seen, owners, known, done=hashed.append)
        self.ledger.remember(found.learned)
        return found, sum(hashed)


@pytest.fixture
def prefix(tmp_path: Path) -> Prefix:
    return Prefix(tmp_path)


def codes(found: Checked) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in found.findings]


def test_a_wheel_is_hashed_once_and_then_known(prefix: Prefix) -> None:
    prefix.wheel("App_x", {"app/a.py": b"a" * 1000, "../../../share/app": b"s" * 1000})
    first, hashed = prefix.check()
    assert codes(first) == []
    assert hashed > 2000
    second, hashed = prefix.check()
    assert hashed == (prefix.root / SITE / "App_x-1.0.dist-info/RECORD").stat().st_size
    assert second.rows == first.rows
    assert second.owners == ("pypi:app-x",)
    row = next(row for row in second.rows if row[0] == "share/app")
    assert row == ["share/app", "file", hexed(b"s" * 1000), 0o644, 1000, 0]
    assert second.size == sum(row[4] for row in second.rows)


@pytest.mark.parametrize("name", ["zope.interface", "Zope_Interface", "zope._interface"])
def test_a_wheel_is_labelled_by_its_normalized_name(prefix: Prefix, name: str) -> None:
    prefix.wheel(name, {})
    assert [owner.label for owner in prefix.owners()] == ["pypi:zope-interface"]


def test_what_a_wheel_brings_along_within_it_is_a_part_of_it(prefix: Prefix) -> None:
    """setuptools holds other distributions, changed, each with the RECORD that it had."""
    inner = "tools/_vendor/more-1.0.dist-info"
    old = f"more/a.py,{declared(b'old')},3\n".encode()
    files = {"tools/_vendor/more/a.py": b"new", f"{inner}/METADATA": b"M"}
    prefix.wheel("tools", {**files, f"{inner}/RECORD": old})
    found, _ = prefix.check()
    assert (codes(found), found.again) == ([], ())
    assert found.owners == ("pypi:tools",)


def test_an_edit_through_the_link_is_found_and_spoils_the_cache(prefix: Prefix) -> None:
    prefix.wheel("app", {"app/a.py": b"a"})
    prefix.check()
    (prefix.root / SITE / "app/a.py").write_bytes(b"b")
    found, _ = prefix.check()
    assert codes(found) == [("file-differs", f"{SITE}/app/a.py")]
    assert [owner.name for owner in found.spoiled] == ["app"]
    assert "pypi:app" not in str(found.learned.keys())


def test_an_edited_copy_spoils_no_cache(prefix: Prefix) -> None:
    prefix.wheel("app", {"app/a.py": b"a"}, more=f"app/b.py,{declared(b'b')},1\n")
    prefix.put(f"{SITE}/app/b.py", b"B", shared=False)
    found, _ = prefix.check()
    assert codes(found) == [("file-differs", f"{SITE}/app/b.py")]
    assert found.spoiled == ()


def test_a_missing_file_is_named_but_for_bytecode(prefix: Prefix) -> None:
    prefix.wheel("app", {"app/a.py": b"a"}, more="app/gone.py,,\napp/__pycache__/a.pyc,,\n")
    found, _ = prefix.check()
    assert codes(found) == [("file-missing", f"{SITE}/app/gone.py")]


@pytest.mark.parametrize("line", ["sha512=abc", "sha256=ä", f"sha256={'=' * 43}", "md5=x"])
def test_a_digest_that_is_none_of_ours_declares_nothing(prefix: Prefix, line: str) -> None:
    prefix.wheel("app", {}, more=f'"app/with, comma.py",{line},1\n')
    prefix.put(f"{SITE}/app/with, comma.py", b"x")
    found, _ = prefix.check()
    assert codes(found) == []
    assert f"{SITE}/app/with, comma.py" in [row[0] for row in found.rows]


def test_programs_of_a_wheel_differ_per_prefix_and_keep_it_known(prefix: Prefix) -> None:
    prefix.wheel("app", {"app/a.py": b"a", "../../../bin/app": b"#!/one/bin/python"})
    prefix.check()
    (prefix.root / SITE / "app-1.0.dist-info/RECORD").unlink()
    (prefix.root / "bin/app").unlink()
    prefix.wheel("app", {"../../../bin/app": b"#!/two/bin/python", "app/a.py": b"a"})
    assert [owner.known is not None for owner in prefix.owners()] == [True]
    assert codes(prefix.check()[0]) == []


def test_equal_files_of_two_wheels_are_fine_and_others_a_clobber(prefix: Prefix) -> None:
    prefix.wheel("aaa", {"shared/__init__.py": b"same", "shared/x.py": b"1"})
    prefix.wheel("bbb", {"shared/__init__.py": b"same", "shared/x.py": b"2"})
    found, _ = prefix.check()
    assert codes(found) == [("clobber", f"{SITE}/shared/x.py")]
    assert found.findings[0].severity == "warning"


def test_a_third_content_is_nobody_s(prefix: Prefix) -> None:
    prefix.put(f"{SITE}/shared/x.py", b"3")
    prefix.wheel("aaa", {"shared/x.py": b"1"})
    prefix.wheel("bbb", {"shared/x.py": b"2"})
    assert ("file-differs", f"{SITE}/shared/x.py") in codes(prefix.check()[0])


def test_a_wheel_over_a_conda_file(prefix: Prefix) -> None:
    path = f"{SITE}/app/a.py"
    prefix.conda("conda-app", [{"_path": path, "path_type": "hardlink", "sha256": hexed(b"c")}])
    prefix.wheel("app", {"app/a.py": b"w"})
    assert codes(prefix.check()[0]) == [("wheel-over-conda", path)]


def test_conda_files_links_and_what_clobbered_them(prefix: Prefix) -> None:
    prefix.put("share/a", b"a")
    prefix.put("__clobbers__/bbb/share/a", b"b")
    (prefix.root / "share/l").symlink_to("a")
    prefix.conda(
        "aaa",
        [
            {"_path": "share/a", "path_type": "hardlink", "sha256": hexed(b"a")},
            {"_path": "share/l", "path_type": "softlink", "sha256": hexed(b"a")},
        ],
    )
    prefix.conda(
        "bbb",
        [
            {
                "_path": "__clobbers__/bbb/share/a",
                "original_path": "share/a",
                "path_type": "hardlink",
                "sha256": hexed(b"b"),
            }
        ],
    )
    found, hashed = prefix.check()
    assert codes(found) == [("clobber", "share/a")]
    assert ["share/l", "link", "a", 0, 0, 0] in found.rows
    again, less = prefix.check()
    assert again.rows == found.rows
    assert less < hashed


def test_a_rewritten_file_is_checked_and_so_is_where_it_came_from(prefix: Prefix) -> None:
    (prefix.cache / "site-packages").mkdir()
    source = prefix.cache / "site-packages/t.py"
    source.write_bytes(b"/placeholder")
    prefix.put(f"{SITE}/t.py", b"/real", shared=False)
    row = {
        "_path": f"{SITE}/t.py",
        "path_type": "hardlink",
        "sha256": hexed(b"/placeholder"),
        "sha256_in_prefix": hexed(b"/real"),
        "prefix_placeholder": "/placeholder",
    }
    prefix.conda("noarch", [row])
    assert codes(prefix.check()[0]) == []
    source.write_bytes(b"/placeholder edited")
    found, _ = prefix.check()
    assert codes(found) == [("file-differs", f"{source}")]
    assert [owner.name for owner in found.spoiled] == ["noarch"]


def test_a_source_that_is_gone(prefix: Prefix) -> None:
    prefix.put("t", b"/real", shared=False)
    prefix.conda(
        "gone",
        [{"_path": "t", "path_type": "hardlink", "sha256": "0" * 64, "prefix_placeholder": "/p"}],
        source="/nonexistent",
    )
    assert ("file-differs", "/nonexistent/t") in codes(prefix.check()[0])


def test_conda_s_own_distributions_are_not_wheels(prefix: Prefix) -> None:
    prefix.wheel("app", {"app/a.py": b"a"})
    paths = [f"{SITE}/app-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL")]
    prefix.conda("app", [{"_path": path, "path_type": "hardlink"} for path in paths])
    assert [owner.label for owner in prefix.owners()] == ["conda:app"]


@pytest.mark.parametrize("text", ["{", '{"paths_data": {}}', '{"paths_data": 1, "link": 2}'])
def test_a_damaged_record_of_conda_is_refused(prefix: Prefix, text: str) -> None:
    prefix.put("conda-meta/x.json", text.encode())
    with pytest.raises(StoreError, match=r"x\.json"):
        prefix.owners()


def test_modes_are_set_whatever_they_were(prefix: Prefix) -> None:
    program = prefix.put("bin/a", b"a", mode=0o4775)
    plain = prefix.put("share/a", b"a", mode=0o600)
    (prefix.root / "share").chmod(0o2770)
    (prefix.root / ".envbuild").mkdir(mode=0o700)
    modes.set_modes(prefix.root, installed.walk(prefix.root))
    assert program.stat().st_mode & 0o7777 == 0o755
    assert plain.stat().st_mode & 0o7777 == 0o644
    assert (prefix.root / "share").stat().st_mode & 0o7777 == 0o755
    assert (prefix.root / ".envbuild").stat().st_mode & 0o777 == 0o700
