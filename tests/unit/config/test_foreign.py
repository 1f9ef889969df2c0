"""What other tools are told: taken where it is about the network, and nothing else."""

from pathlib import Path

import pytest

from envbuild.config.foreign import rows
from envbuild.config.keys import Value
from envbuild.errors import InputError


def _machine(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _told(root: Path, *, with_files: bool = True, **environ: str) -> dict[str, tuple[Value, str]]:
    """Return what counts: key to value and origin."""
    found: dict[str, tuple[Value, str]] = {}
    for row in rows(environ, root / "home", root=root, with_files=with_files):
        found.setdefault(row.key, (row.value, row.origin.replace(f"{root}/", "")))
    return found


def test_nothing(tmp_path: Path) -> None:
    assert _told(tmp_path) == {}


def test_pip(tmp_path: Path) -> None:
    text = "[global]\nindex-url = https://i/simple\nproxy = http://p:1\ncert = /c.pem\n"
    _machine(tmp_path, **{"etc/pip.conf": text})
    at = "etc/pip.conf:{} (pip)"
    assert _told(tmp_path) == {
        "index.default": ("https://i/simple", at.format(2)),
        "proxy.https": ("http://p:1", at.format(3)),
        "proxy.http": ("http://p:1", at.format(3)),
        "certificates": ("/c.pem", at.format(4)),
    }
    told = _told(tmp_path, PIP_CERT="/v.pem", UV_DEFAULT_INDEX="https://u")
    assert told["certificates"] == ("/v.pem", "PIP_CERT (pip)")
    assert told["index.default"] == ("https://u", "UV_DEFAULT_INDEX (uv)")
    assert _told(tmp_path, with_files=False) == {}
    assert _told(tmp_path, with_files=False, PIP_INDEX_URL="https://v") == {
        "index.default": ("https://v", "PIP_INDEX_URL (pip)")
    }


def test_conda(tmp_path: Path) -> None:
    system = "channel_alias: https://sys\nssl_verify: false\nchannels: [defaults]\n"
    own = """# mine
channels: [corp]
custom_channels:
  nvidia: https://m/c
  local: file:///srv
proxy_servers:
  https: http://bob:pw@p:3128
  https://one.host: http://other
ssl_verify: ~/corp.pem
channel_alias: https://alias/
"""
    _machine(tmp_path, **{"etc/conda/condarc.d/site.yml": system})
    assert _told(tmp_path) == {
        "mirrors.*": (("https://sys",), "etc/conda/condarc.d/site.yml:1 (conda)")
    }
    _machine(tmp_path, **{"home/.condarc": own, "home/.conda/condarc": ""})
    at = "home/.condarc:{} (conda)"
    assert _told(tmp_path) == {
        "mirrors.*": (("https://alias",), at.format(10)),
        "mirrors.nvidia": (("https://m/c/nvidia",), at.format(4)),
        "proxy.https": ("http://bob:pw@p:3128", at.format(7)),
        "certificates": (f"{tmp_path}/home/corp.pem", at.format(9)),
    }
    told = _told(tmp_path, CONDA_CHANNEL_ALIAS="https://v", CONDA_SSL_VERIFY="/v.pem")
    assert told["mirrors.*"] == (("https://v",), "CONDA_CHANNEL_ALIAS (conda)")
    assert told["certificates"] == ("/v.pem", "CONDA_SSL_VERIFY (conda)")
    _machine(tmp_path, **{"own.yml": "channel_alias: https://own\n"})
    assert _told(tmp_path, CONDARC=str(tmp_path / "own.yml"))["mirrors.*"][0] == ("https://own",)


def test_pixi_and_rattler(tmp_path: Path) -> None:
    text = """default-channels = ["x"]
tls-no-verify = true
authentication-override-file = "/auth.json"
[mirrors]
"https://channels/cf/" = ["https://a/cf/", "oci://b", "https://c/cf"]
[proxy-config]
https = "http://p:1"
non-proxy-hosts = [".corp", "localhost"]
[pypi-config]
index-url = "https://not/taken"
"""
    _machine(tmp_path, **{"home/.pixi/config.toml": text, "home/.rattler/credentials.json": "{}"})
    at = "home/.pixi/config.toml:{} (pixi)"
    assert _told(tmp_path) == {
        "mirrors.https://channels/cf": (("https://a/cf", "https://c/cf"), at.format(5)),
        "proxy.https": ("http://p:1", at.format(7)),
        "proxy.bypass": (".corp,localhost", at.format(8)),
        "credentials": ("/auth.json", at.format(3)),
    }
    (tmp_path / "home/.pixi/config.toml").unlink()
    name = "home/.rattler/credentials.json"
    assert _told(tmp_path) == {"credentials": (str(tmp_path / name), f"{name} (rattler)")}


@pytest.mark.parametrize(
    ("name", "text"), [("home/.condarc", "a: [\n"), ("home/.pixi/config.toml", "a = [\n")]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str) -> None:
    _machine(tmp_path, **{name: text})
    with pytest.raises(InputError, match=name):
        _told(tmp_path)
    assert _told(tmp_path, with_files=False) == {}
