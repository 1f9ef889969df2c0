"""What pip, uv, conda and pixi are already told about the network; it counts least of all.

Only addresses, proxies, certificates and files of logins are taken: nothing here can change what
a lock holds. A switch that turns certificates off is not followed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from envbuild.config.keys import Setting, Value
from envbuild.document import Node
from envbuild.errors import InputError
from envbuild.tools import index_settings

_CONDA_FILES = (("ssl_verify", "certificates"), ("client_ssl_cert", "client-certificate"))
_CONDA_FOLDERS = ("etc/conda", "var/lib/conda")


def rows(
    environ: Mapping[str, str],
    home: Path,
    *,
    root: Path = Path("/"),
    with_files: bool = True,
) -> tuple[Setting, ...]:
    """Return what other tools are told, the one that counts most first.

    Args:
        environ: The variables.
        home: The user's home directory.
        root: Where `/etc` is.
        with_files: Whether their files are read as well as their variables.

    Raises:
        InputError: One of their files cannot be read.
    """
    if not with_files:
        environ = {**environ, "UV_NO_CONFIG": "1", "PIP_CONFIG_FILE": os.devnull}
    found = [*_index(environ, home, root), *_variables(environ), *_pip(environ, home, root)]
    if with_files:
        found += _pixi(environ, home, root)
        found += _conda(environ, home, root)
        found += _credentials(home)
    return tuple(found)


def _variables(environ: Mapping[str, str]) -> Iterator[Setting]:
    """Give what stands in variables of pip and conda."""
    for variable, key in (("PIP_CERT", "certificates"), ("PIP_CLIENT_CERT", "client-certificate")):
        if value := environ.get(variable, "").strip():
            yield Setting(key=key, value=value, source=variable, tool="pip")
    for variable, key in (("UV_HTTP_TIMEOUT", "http-timeout"), ("UV_HTTP_RETRIES", "http-retries")):
        if (value := environ.get(variable, "").strip()).isdigit():
            yield Setting(key=key, value=int(value), source=variable, tool="uv")
    if (proxy := environ.get("PIP_PROXY", "").strip()) and "://" in proxy:
        for key in ("proxy.https", "proxy.http"):
            yield Setting(key=key, value=proxy, source="PIP_PROXY", tool="pip")
    verify = environ.get("CONDA_SSL_VERIFY", "")
    if verify.startswith("/"):
        yield Setting(key="certificates", value=verify, source="CONDA_SSL_VERIFY", tool="conda")
    alias = environ.get("CONDA_CHANNEL_ALIAS", "")
    if _is_http(alias):
        urls = (alias.rstrip("/"),)
        yield Setting(key="mirrors.*", value=urls, source="CONDA_CHANNEL_ALIAS", tool="conda")


def _index(environ: Mapping[str, str], home: Path, root: Path) -> Iterator[Setting]:
    """Give the default index of uv's variables, its files, pip's variable, or pip's files."""
    told = index_settings.default_index(environ, home, root=root)
    if told is not None:
        tool = "uv" if told.source.startswith("UV_") or told.source.endswith(".toml") else "pip"
        yield _setting("index.default", told.value, told.source, tool)


def _pip(environ: Mapping[str, str], home: Path, root: Path) -> Iterator[Setting]:
    """Give proxy and certificates of pip's files (`[global]` alone; a later file wins)."""
    for option, keys in (
        ("cert", ("certificates",)),
        ("client-cert", ("client-certificate",)),
        ("proxy", ("proxy.https", "proxy.http")),
    ):
        told = index_settings.pip_option(option, environ, home, root=root)
        for key in keys if told is not None else ():
            if told is not None and (option != "proxy" or "://" in told.value):
                yield _setting(key, told.value, told.source, "pip")


def _pixi(environ: Mapping[str, str], home: Path, root: Path) -> Iterator[Setting]:
    """Give mirrors, proxies and the file of logins that pixi is told.

    Places and keys: pixi.prefix.dev/latest/reference/pixi_configuration, read 2026-12.
    """
    import tomllib

    base = environ.get("XDG_CONFIG_HOME") or home / ".config"
    own = environ.get("PIXI_HOME") or home / ".pixi"
    for path in (
        Path(own, "config.toml"),
        Path(base, "pixi/config.toml"),
        root / "etc/pixi/config.toml",
    ):
        text = index_settings.text_of(path)
        if text is None:
            continue
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            message = f"{path}: not a TOML file: {error}"
            raise InputError(message, source=str(path)) from error
        mirrors = data.get("mirrors")
        for channel, urls in mirrors.items() if isinstance(mirrors, dict) else ():
            fitting = _fitting(urls if isinstance(urls, list) else [urls])
            if fitting:
                yield _setting(f"mirrors.{channel.rstrip('/')}", fitting, path, "pixi", channel)
        proxies = data.get("proxy-config")
        for name, key in (("https", "proxy.https"), ("http", "proxy.http")):
            value = proxies.get(name) if isinstance(proxies, dict) else None
            if isinstance(value, str) and _is_http(value):
                yield _setting(key, value, path, "pixi")
        direct = proxies.get("non-proxy-hosts") if isinstance(proxies, dict) else None
        if isinstance(direct, list) and direct:
            hosts = ",".join(map(str, direct))
            yield _setting("proxy.bypass", hosts, path, "pixi", "non-proxy-hosts")
        logins = data.get("authentication-override-file")
        if isinstance(logins, str):
            yield _setting("credentials", logins, path, "pixi")


def _conda(environ: Mapping[str, str], home: Path, root: Path) -> Iterator[Setting]:
    """Give mirrors, proxies and certificates of conda's files.

    Places: conda's docs/source/user-guide/configuration/use-condarc.rst, read 2026-12; those of
    an installation or an active environment are left out.
    """
    for path in _condarcs(environ, home, root):
        text = index_settings.text_of(path)
        if not text or not text.strip():
            continue
        from envbuild.reader import scan

        top = scan(text, source=str(path)).root
        values = top.value if isinstance(top.value, Mapping) else {}
        yield from _conda_channels(values, path)
        proxies = values.get("proxy_servers")
        for name, node in proxies.children() if proxies is not None else ():
            if name in {"http", "https"} and isinstance(node.value, str) and _is_http(node.value):
                yield _from_conda(f"proxy.{name}", node.value, path, node)
        for name, key in _CONDA_FILES:
            verify = values.get(name)
            if verify is not None and isinstance(verify.value, str):
                told = Path(verify.value.replace("~", str(home), 1))
                if told.is_absolute():
                    yield _from_conda(key, str(told), path, verify)


def _conda_channels(values: Mapping[str, Node], path: Path) -> Iterator[Setting]:
    custom = values.get("custom_channels")
    for name, node in custom.children() if custom is not None else ():
        if isinstance(node.value, str) and _is_http(node.value):
            url = f"{node.value.rstrip('/')}/{name}"
            yield _from_conda(f"mirrors.{name}", (url,), path, node)
    alias = values.get("channel_alias")
    if alias is not None and isinstance(alias.value, str) and _is_http(alias.value):
        yield _from_conda("mirrors.*", (alias.value.rstrip("/"),), path, alias)


def _condarcs(environ: Mapping[str, str], home: Path, root: Path) -> Iterator[Path]:
    """Give conda's files that are there, the one that counts most first."""
    base = environ.get("XDG_CONFIG_HOME")
    folders = [root / folder for folder in _CONDA_FOLDERS]
    users = [*([Path(base, "conda")] if base else []), home / ".config/conda", home / ".conda"]
    paths: list[Path] = []
    for folder in (*folders, *users):
        paths += [folder / ".condarc", folder / "condarc"]
        more = folder / "condarc.d"
        if more.is_dir():
            paths += sorted(one for one in more.iterdir() if one.suffix in {".yml", ".yaml"})
    paths.append(home / ".condarc")
    if told := environ.get("CONDARC"):
        paths.append(Path(told))
    return reversed(paths)


def _credentials(home: Path) -> Iterator[Setting]:
    """Give the file of logins that rattler writes where there is no keyring.

    Place and form: rattler_networking's authentication_storage, read 2026-12.
    """
    path = home / ".rattler/credentials.json"
    if path.is_file():
        yield Setting(key="credentials", value=str(path), source=str(path), tool="rattler")


def _is_http(url: str) -> bool:
    return urlsplit(url).scheme in {"http", "https"} and not set(url) & set(" \t\n")


def _fitting(urls: Sequence[object]) -> tuple[str, ...]:
    """Return the addresses that can stand in for a channel: the engine reads mirrors by http."""
    return tuple(url.rstrip("/") for url in urls if isinstance(url, str) and _is_http(url))


def _from_conda(key: str, value: Value, path: Path, node: Node) -> Setting:
    return Setting(key=key, value=value, source=str(path), line=node.mark.line, tool="conda")


def _setting(
    key: str, value: Value, source: Path | str, tool: str, written: str | None = None
) -> Setting:
    """Return a setting with the first line of its file that has it (or what `written` says)."""
    text = written or str(value)
    line = None
    if str(source).startswith("/"):
        lines = (index_settings.text_of(Path(source)) or "").splitlines()
        line = next((number for number, each in enumerate(lines, 1) if text in each), None)
    return Setting(key=key, value=value, source=str(source), line=line, tool=tool)
