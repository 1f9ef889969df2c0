"""Which address the default index has, and what the engines are told of the network."""

from pathlib import Path

import pytest

from envbuild.errors import InputError, UsageProblem
from envbuild.tools.index_settings import (
    channel_mirrors,
    default_index,
    http_limits,
    network_environment,
)

FILES = {
    "home/.config/uv/uv.toml": '[[index]]\nurl = "https://uv-user/simple"\ndefault = true\n',
    "etc/uv/uv.toml": 'index-url = "https://uv-system/simple"\n',
    "home/.config/pip/pip.conf": "[global]\nindex-url = https://pip-user/simple\n",
    "home/.pip/pip.conf": "[global]\nindex-url = https://pip-legacy/simple\n",
    "etc/pip.conf": "[global]\nindex_url = https://pip-global/simple\n",
    "etc/xdg/pip/pip.conf": "[global]\nindex-url = https://pip-xdg/simple\n",
    "site/pip.conf": "[install]\nindex-url = https://pip-site/simple\n",
    "own.conf": "[global]\nindex-url = https://pip-own/simple\n",
}


def machine(root: Path, *names: str, **files: str) -> None:
    for name, text in {**{name: FILES[name] for name in names}, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(root: Path, **environ: str) -> str | None:
    told = default_index(environ, root / "home", root=root, site=root / "site")
    return None if told is None else told.value


def test_nothing_is_set(tmp_path: Path) -> None:
    assert found(tmp_path) is None


def test_the_first_that_names_one_counts(tmp_path: Path) -> None:
    machine(tmp_path, *FILES)
    environ = {
        "UV_DEFAULT_INDEX": "https://default/simple",
        "UV_INDEX_URL": "https://old/simple",
        "PIP_INDEX_URL": "https://pip/simple",
    }
    seen = [found(tmp_path, **environ)]
    environ["UV_DEFAULT_INDEX"] = ""
    seen.append(found(tmp_path, **environ))
    del environ["UV_INDEX_URL"]
    seen.append(found(tmp_path, **environ))
    for name in ("home/.config/uv/uv.toml", "etc/uv/uv.toml"):
        (tmp_path / name).unlink()
        seen.append(found(tmp_path, **environ))
    seen.append(found(tmp_path))
    for name in (
        "site/pip.conf",
        "home/.config/pip/pip.conf",
        "home/.pip/pip.conf",
        "etc/pip.conf",
        "etc/xdg/pip/pip.conf",
    ):
        (tmp_path / name).unlink()
        seen.append(found(tmp_path))
    assert seen == [
        "https://default/simple",
        "https://old/simple",
        "https://uv-user/simple",
        "https://uv-system/simple",
        "https://pip/simple",
        "https://pip-site/simple",
        "https://pip-user/simple",
        "https://pip-legacy/simple",
        "https://pip-global/simple",
        "https://pip-xdg/simple",
        None,
    ]


def test_pips_own_file_replaces_the_users_and_devnull_all(tmp_path: Path) -> None:
    machine(tmp_path, *(name for name in FILES if "pip" in name or name == "own.conf"))
    assert found(tmp_path, PIP_CONFIG_FILE=str(tmp_path / "own.conf")) == "https://pip-own/simple"
    assert found(tmp_path, PIP_CONFIG_FILE="/dev/null") is None
    (tmp_path / "site/pip.conf").unlink()
    assert found(tmp_path, PIP_CONFIG_FILE=str(tmp_path / "none")) == "https://pip-user/simple"
    (tmp_path / "own.conf").write_text("[global]\ntimeout = 3\n")
    assert (
        found(tmp_path, PIP_CONFIG_FILE=str(tmp_path / "own.conf")) == "https://pip-global/simple"
    )


def test_nothing_else_is_taken(tmp_path: Path) -> None:
    machine(
        tmp_path,
        **{
            "home/.config/uv/uv.toml": 'extra-index-url = ["https://extra/simple"]\n'
            '[[index]]\nname = "corp"\nurl = "https://corp/simple"\n'
            'exclude-newer = "2020-01-01T00:00:00Z"\n',
            "home/.config/pip/pip.conf": "[global]\nextra-index-url = https://extra/simple\n"
            "find-links = /opt/wheels\nconstraint = /etc/constraints.txt\n",
        },
    )
    assert found(tmp_path, UV_INDEX="https://more/simple", PIP_EXTRA_INDEX_URL="https://e") is None


def test_uvs_own_variables_of_its_configuration(tmp_path: Path) -> None:
    machine(tmp_path, "home/.config/uv/uv.toml", **{"x.toml": '[pip]\nindex-url = "https://x/s"\n'})
    assert found(tmp_path, UV_CONFIG_FILE=str(tmp_path / "x.toml")) == "https://x/s"
    assert found(tmp_path, UV_NO_CONFIG="1") is None
    assert found(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "else")) is None


def test_a_name_before_the_address_is_dropped(tmp_path: Path) -> None:
    assert found(tmp_path, UV_DEFAULT_INDEX="corp=https://corp/simple") == "https://corp/simple"
    address = "https://corp/simple?key=https://x"
    assert found(tmp_path, UV_DEFAULT_INDEX=address) == address


@pytest.mark.parametrize(
    ("name", "text"),
    [("home/.config/uv/uv.toml", "index-url = [\n"), ("etc/pip.conf", "index-url = x\n")],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str) -> None:
    machine(tmp_path, **{name: text})
    with pytest.raises(InputError) as caught:
        found(tmp_path)
    assert caught.value.source == str(tmp_path / name)
    assert name in caught.value.message


def test_channel_mirrors() -> None:
    text = (
        "conda-forge=http://localhost:8000/cf pytorch=https://a/pytorch conda-forge=https://b/cf"
        " nvidia/label/cuda-12.4.0=http://c/n?x=1"
    )
    assert channel_mirrors({"ENVBUILD_CHANNEL_MIRRORS": text}) == {
        "conda-forge": ("http://localhost:8000/cf", "https://b/cf"),
        "pytorch": ("https://a/pytorch",),
        "nvidia/label/cuda-12.4.0": ("http://c/n?x=1",),
    }
    assert channel_mirrors({}) == {}


@pytest.mark.parametrize(
    "entry", ["conda-forge", "conda-forge=file:///srv", "conda-forge=", "=http://x", "a=b:s3cret@c"]
)
def test_a_mirror_that_is_none(entry: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        channel_mirrors({"ENVBUILD_CHANNEL_MIRRORS": f"ok=http://x {entry}"})
    assert "s3cret" not in caught.value.details


@pytest.mark.parametrize(
    "name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"]
)
def test_certificates_reach_both_engines(name: str) -> None:
    assert network_environment({name: "/bundle.pem"}) == {
        "SSL_CERT_FILE": "/bundle.pem",
        "REQUESTS_CA_BUNDLE": "/bundle.pem",
    }


def test_a_folder_of_certificates(tmp_path: Path) -> None:
    assert network_environment({"REQUESTS_CA_BUNDLE": str(tmp_path)}) == {
        "SSL_CERT_DIR": str(tmp_path),
        "REQUESTS_CA_BUNDLE": str(tmp_path),
    }


@pytest.mark.parametrize(
    ("told", "limits"),
    [
        ({}, (30, 3)),
        ({"UV_HTTP_TIMEOUT": "60", "UV_HTTP_RETRIES": "0"}, (60, 0)),
        ({"ENVBUILD_HTTP_TIMEOUT": " 5 ", "UV_HTTP_TIMEOUT": "60"}, (5, 3)),
        ({"ENVBUILD_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "soon"}, (30, 0)),
    ],
)
def test_limits_of_every_request(told: dict[str, str], limits: tuple[int, int]) -> None:
    assert http_limits(told) == limits


@pytest.mark.parametrize(
    ("name", "value"), [("TIMEOUT", "0"), ("TIMEOUT", "1.5"), ("RETRIES", "-1"), ("RETRIES", "x")]
)
def test_a_limit_that_is_none(name: str, value: str) -> None:
    with pytest.raises(UsageProblem, match=f"ENVBUILD_HTTP_{name} is '{value}'"):
        http_limits({f"ENVBUILD_HTTP_{name}": value})


def test_proxies_netrc_and_logins_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine x login a password b\n")
    told = {
        "HOME": str(tmp_path),
        "HTTPS_PROXY": "http://upper:1",
        "https_proxy": "http://lower:1",
        "NO_PROXY": "localhost",
        "http_proxy": "",
        "UV_INDEX_CORP_PASSWORD": "p",
        "UV_HTTP_TIMEOUT": "60",
        "UV_EXCLUDE_NEWER": "2020-01-01",
        "UV_INDEX": "https://x",
        "PATH": "/bin",
    }
    assert network_environment(told) == {
        "HTTPS_PROXY": "http://lower:1",
        "https_proxy": "http://lower:1",
        "NO_PROXY": "localhost",
        "no_proxy": "localhost",
        "NETRC": str(tmp_path / ".netrc"),
        "UV_INDEX_CORP_PASSWORD": "p",
    }
