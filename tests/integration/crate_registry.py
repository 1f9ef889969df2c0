"""A registry of crates on localhost, as cargo reads it (sparse index, RFC 2789)."""

import contextlib
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

INDEX = "https://registry.invalid/index"
"""The address by which crates are named; cargo is told to ask localhost in its place."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


def crate(root: Path, name: str, version: str, source: str) -> str:
    """Put a crate of one file into a registry, and return its entry of a Cargo.lock.

    Args:
        root: The registry's folder.
        name: The crate's, of four letters or more.
        version: Its version.
        source: Its `src/lib.rs`.
    """
    manifest = f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\n'
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, text in (("Cargo.toml", manifest), ("src/lib.rs", source)):
            info = tarfile.TarInfo(f"{name}-{version}/{path}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    digest = hashlib.sha256(data.getvalue()).hexdigest()
    row = {"name": name, "vers": version, "deps": [], "cksum": digest, "features": {}}
    files = {
        root / name[:2] / name[2:4] / name: json.dumps({**row, "yanked": False}).encode() + b"\n",
        root / f"crates/{name}/{version}/download": data.getvalue(),
    }
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return (
        f'[[package]]\nname = "{name}"\nversion = "{version}"\n'
        f'source = "registry+{INDEX}"\nchecksum = "{digest}"\n'
    )


@contextlib.contextmanager
def registry(root: Path, home: Path) -> Iterator[None]:
    """Serve a registry, and write settings of cargo that put it in the place of the public one.

    Args:
        root: The registry's folder.
        home: Value of CARGO_HOME.
    """
    root.mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=f"{root}"))
    address = f"http://127.0.0.1:{server.server_port}"
    (root / "config.json").write_text(json.dumps({"dl": f"{address}/crates"}))
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(
        f'[source.public]\nregistry = "{INDEX}"\nreplace-with = "here"\n'
        f'[source.here]\nregistry = "sparse+{address}/"\n[net]\nretry = 0\n'
    )
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
