"""Logins leave addresses, and go to nobody else."""

from pathlib import Path

import pytest

from envbuild.access import Access
from envbuild.errors import InputError
from envbuild.tools import addresses
from envbuild.tools.addresses import Login


@pytest.mark.parametrize(
    ("url", "bare", "user", "password"),
    [
        ("https://bob:p%40ss@host:8080/a", "https://host:8080/a", "bob", "p@ss"),
        ("https://token@host/a?b=c", "https://host/a?b=c", "token", ""),
        ("https://a@b:c@host/x", "https://host/x", "a@b", "c"),
    ],
)
def test_a_login_is_taken_out(url: str, bare: str, user: str, password: str) -> None:
    found, login = addresses.split_login(url)
    assert found == addresses.without_login(url) == bare
    assert login == Login(address=bare, user=user, password=password)


def test_an_address_without_login_stays() -> None:
    assert addresses.split_login("https://host/a@b") == ("https://host/a@b", None)


def test_a_login_is_not_shown_and_becomes_a_header() -> None:
    _, login = addresses.split_login("https://bob:s3cret@host")
    assert login is not None
    assert "s3cret" not in repr(login)
    assert login.header == "Basic Ym9iOnMzY3JldA=="


def test_mirrors_lose_their_logins_and_slashes() -> None:
    access = Access(channel_mirrors={"conda-forge": ("https://u:p@one/cf/", "http://two/cf")})
    found = addresses.mirrors(access)
    assert found.places == {"conda-forge": ("https://one/cf", "http://two/cf")}
    assert [login.address for login in found.logins] == ["https://one/cf"]


def test_the_closest_login_counts_and_no_other() -> None:
    wide = Login(address="https://host", user="wide", password="")
    near = Login(address="https://host/a", user="near", password="")
    port = Login(address="https://host:81/b", user="port", password="")
    every = (wide, near, port)
    assert addresses.login_for("https://host/a/x", every) is near
    assert addresses.login_for("https://host/ab", every) is wide
    assert addresses.login_for("https://host:81/b/c", every) is port
    assert addresses.login_for("https://other/a", every) is None
    assert addresses.login_for("http://host/a", every) is None


def test_netrc_is_the_file_that_the_access_names(tmp_path: Path) -> None:
    assert addresses.netrc_logins(Access()) == ()
    file = tmp_path / "netrc"
    gone = Access(environment={"NETRC": str(file)})
    assert addresses.netrc_logins(gone) == ()
    file.write_text("machine host login bob password s3cret\ndefault login x password y\n")
    found = addresses.netrc_logins(gone)
    assert {login.address for login in found} == {"https://host", "http://host"}
    assert {(login.user, login.password) for login in found} == {("bob", "s3cret")}


def test_a_broken_netrc_is_named_without_its_content(tmp_path: Path) -> None:
    file = tmp_path / "netrc"
    file.write_text("machine host login bob password s3cret\nsurprise s3cret\n")
    with pytest.raises(InputError, match="not a netrc file") as info:
        addresses.netrc_logins(Access(environment={"NETRC": str(file)}))
    assert "s3cret" not in info.value.message


@pytest.mark.parametrize(
    ("host", "no_proxy", "direct"),
    [
        ("a.example", "", False),
        ("a.example", "*", True),
        ("a.example", "b.example, .example", True),
        ("a.example", "a.example:8080", True),
        ("a.example", "*.example", True),
        ("aexample", "example", False),
        ("A.Example", "example", True),
        ("127.0.0.1", "localhost,127.0.0.1", True),
    ],
)
def test_no_proxy_lists(host: str, no_proxy: str, *, direct: bool) -> None:
    assert addresses.bypasses_proxy(host, no_proxy) is direct


def test_addresses_are_joined_with_one_slash() -> None:
    assert addresses.join("https://host/a/", "/b/c") == "https://host/a/b/c"
