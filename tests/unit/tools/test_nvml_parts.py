"""Where NVML's library is looked for."""

from pathlib import Path

from envbuild.tools.nvml import LIBRARY, libraries


def test_the_hosts_own_library_is_found_by_the_loader_first() -> None:
    assert libraries(None)[0] == LIBRARY


def test_a_drivers_own_tree_is_all_that_is_searched(tmp_path: Path) -> None:
    assert libraries(tmp_path) == (f"{tmp_path}/usr/lib64/{LIBRARY}",)
    for folder in ("usr/lib/aarch64-linux-gnu", "lib64"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / LIBRARY).touch()
    assert libraries(tmp_path) == (
        f"{tmp_path}/usr/lib/aarch64-linux-gnu/{LIBRARY}",
        f"{tmp_path}/lib64/{LIBRARY}",
    )
