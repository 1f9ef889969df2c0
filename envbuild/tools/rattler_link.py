"""Linking with py-rattler; loaded only in the worker process."""

import json
from pathlib import Path
from typing import Any

from rattler import Client, PackageRecord, RepoDataRecord, Subdir
from rattler.exceptions import InstallerError, LinkError, TransactionError
from rattler.install import install
from rattler.networking import AddHeadersMiddleware
from rattler.package import BuildString, NoArchType
from rattler.package_cache import PackageCache, PackageCacheLayer, ValidationMode


async def link_all(request: dict[str, Any]) -> dict[str, Any]:
    """Link packages that lie in a cache into a new prefix; nothing is fetched.

    Returns:
        `{"linked": N}`, or `{"error": {"kind": "link", "text": ...}}`.
    """
    records = [_record(item) for item in request["packages"]]
    # the parent has compared every file with what was extracted
    layer = PackageCacheLayer(request["cache"]).with_validation_mode(ValidationMode.skip())
    try:
        await install(
            records,
            request["prefix"],
            package_cache=PackageCache.from_layers([layer]),
            installed_packages=[],
            platform=Subdir(request["platform"]),
            execute_link_scripts=False,
            show_progress=False,
            client=Client([AddHeadersMiddleware(_refuse)]),
        )
    except (InstallerError, LinkError, TransactionError) as error:
        return {"error": {"kind": "link", "text": str(error)}}
    return {"linked": len(records)}


def _refuse(host: str, path: str) -> dict[str, str]:
    """Stop a request: everything that is linked has been fetched and checked before."""
    message = f"linking wanted to fetch {path} from {host}"
    raise RuntimeError(message)


def _record(item: dict[str, Any]) -> RepoDataRecord:
    """Return a record: what the lock says, and from the package itself what linking needs."""
    index = json.loads((Path(item["folder"]) / "info" / "index.json").read_bytes())
    noarch = index.get("noarch")
    record = PackageRecord(
        item["name"],
        item["version"],
        BuildString(item["build"]),
        int(index.get("build_number", 0)),
        item["subdir"],
        noarch=NoArchType(noarch if noarch in {"python", "generic"} else None),
        depends=item["depends"],
        constrains=list(index.get("constrains", [])),
        sha256=_bytes(item["sha256"]),
        md5=_bytes(item["md5"]),
        size=item["size"],
        license=index.get("license"),
        python_site_packages_path=index.get("python_site_packages_path"),
    )
    return RepoDataRecord(record, item["file"], item["url"], item["channel"])


def _bytes(digest: str | None) -> bytes | None:
    return None if digest is None else bytes.fromhex(digest)
