"""Lines of `.comment`, as real files have them."""

import pytest

from envbuild.native.compilers import compiler


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("GCC: (Debian 12.2.0-14+deb12u1) 12.2.0", "GCC 12.2.0"),
        ("GCC: (GNU) 9.3.1 20200408 (Red Hat 9.3.1-2)", "GCC 9.3.1"),
        ("GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-44)", "GCC 4.8.5"),
        ("GCC: (Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0", "GCC 13.3.0"),
        ("GCC: (conda-forge gcc 14.2.0-2) 14.2.0", "GCC 14.2.0"),
        ("clang version 17.0.6 (https://example.org/llvm 0123abcd)", "clang 17.0.6"),
        ("rustc version 1.81.0 (eeb90cda1 2024-09-04)", "rustc 1.81.0"),
        (
            "Intel(R) oneAPI DPC++/C++ Compiler 2025.0.1 (2025.0.1.20241113)",
            "Intel oneAPI DPC++ 2025.0.1",
        ),
        ("Linker: LLD 19.0.0", None),
        ("some other text", None),
    ],
)
def test_the_compiler_that_a_line_names(line: str, name: str | None) -> None:
    assert compiler(line) == name
