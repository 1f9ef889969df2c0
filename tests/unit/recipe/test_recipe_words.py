"""The small languages of a recipe's scalars."""

from collections.abc import Callable

import pytest

from envbuild.recipe import compilers, source_words, words

Check = Callable[[str], str]

GOOD = [
    (words.name, "h100-pt24.x_y", "h100-pt24.x_y"),
    (words.version, "12.4", "12.4"),
    (words.version_range, ">=550.54.14, !=550.90.07", ">=550.54.14,!=550.90.07"),
    (words.python, "3.10", "3.10"),
    (words.python, "3.11.*", "3.11"),
    (words.python, "3.11.7", "3.11.7"),
    (words.python, ">= 3.11, <3.15", ">=3.11,<3.15"),
    (words.python, "~=3.11", "~=3.11"),
    (words.glibc, "2.17", "2.17"),
    (words.branch, "r550", "550"),
    (words.archspec, "x86_64_v3", "x86_64_v3"),
    (words.framework, "PyTorch==2.4.0", "pytorch ==2.4.0"),
    (words.framework, "jax", "jax"),
    (words.http_url, "https://x.test/simple/", "https://x.test/simple"),
    (words.http_url, "http://[::1]:8080/x", "http://[::1]:8080/x"),
    (words.channel, "nvidia/label/cuda-12.4.0", "nvidia/label/cuda-12.4.0"),
    (words.channel, "https://x.test/c/", "https://x.test/c"),
    (words.conda_name, "CUDA-nvcc", "cuda-nvcc"),
    (words.pypi_name, "My.Package", "my-package"),
    (words.gpu, "H100 SXM5", "h100-sxm5"),
    (compilers.normal, "gcc 12", "gcc 12"),
    (compilers.normal, "Clang=17.0.6", "clang 17.0.6"),
    (compilers.normal, "gcc >=12", "gcc 12"),
    (compilers.normal, "gcc ==12.*", "gcc ==12.*"),
    (compilers.normal, "GCC==12", "gcc ==12.*"),
    (compilers.normal, "gcc ==12.3.*", "gcc ==12.3.*"),
    (source_words.git_url, "https://x.test/a/b.git/", "https://x.test/a/b.git"),
    (source_words.git_url, "ssh://git@x.test/a.git", "ssh://git@x.test/a.git"),
    (source_words.git_url, "file:///srv/git/a", "file:///srv/git/a"),
    (source_words.git_ref, "v2.4.0", "v2.4.0"),
    (source_words.git_commit, "ABCDEF0123" * 4, "abcdef0123" * 4),
    (source_words.sha256, "sha256:" + "0a" * 32, "0a" * 32),
    (words.cuda_arch, "10.0f", "10.0f"),
    (words.cuda_arch, "9.0+PTX", "9.0+PTX"),
    (words.finding_code, "weak-hash", "weak-hash"),
    (words.module, "torch.cuda", "torch.cuda"),
    (words.command, "python -c 'a b'", "python -c 'a b'"),
    (words.size, "40G", "40G"),
    (words.size, "1.5T", "1.5T"),
    (words.size, "80%", "80%"),
    (words.size, "infinity", "infinity"),
    (words.count, "4096", "4096"),
    (words.percent, "12.5%", "12.5%"),
    (words.cpu_list, "0-15,32 40", "0-15,32 40"),
    (words.time_span, "1h 30min", "1h 30min"),
    (words.time_span, "500ms", "500ms"),
    (words.time_span, "90", "90"),
    (words.time_span, "1h30min", "1h30min"),
    (words.schedule, "Mon..Fri *-*-* 03:00:00", "Mon..Fri *-*-* 03:00:00"),
    (words.listen, "127.0.0.1:80", "127.0.0.1:80"),
    (words.absolute_path, "/srv/a b", "/srv/a b"),
    (words.account, "trainer", "trainer"),
    (words.signal, "SIGRTMIN+3", "SIGRTMIN+3"),
    (words.variable, "CUDA_HOME", "CUDA_HOME"),
]

BAD = [
    (words.name, ["", ".x", "a/b", "a b", "x" * 65, "größe"]),
    (words.version, ["", "12.", "v12", "12.4a", ">=12"]),
    (words.version_range, ["550", ">=x y", "=550", "==="]),
    (words.version_range, ["===550"]),
    (words.python, ["3", "2.7", "python3.11", "3.11 3.12", "311", "<", "py311", ">=three"]),
    (words.glibc, ["2", "3.0", "2.28.1", "musl"]),
    (words.branch, ["R55", "550.54", "production"]),
    (words.archspec, ["x86-64-v3", "Zen 4"]),
    (words.framework, ["torch @ https://x.test", "torch[x]", "a b", "torch; python_version>'3'"]),
    (words.http_url, ["x.test", "file:///x", "ftp://x.test", "https://", "https://a b.test",
                      "https://[x"]),
    (words.channel, ["", "a b", "/x", "../x", "defaults", "nodefaults", "file:///x", "a//b"]),
    (words.conda_name, ["a b", "-x", "a/b", "ä"]),
    (words.pypi_name, ["a b", "-x", "x-", "a[b]"]),
    (words.gpu, ["", "h100,b200", "ä"]),
    (compilers.normal, ["gcc", "icc 12", "gcc 12.1.2.3", "gcc twelve", "gcc 12.*", "gcc <12"]),
    (compilers.normal, ["gcc >=12.*", "gcc ===12", "12"]),
    (source_words.git_url, ["x", "git@x.test:a/b", "https://x.test", "file:a", "https://[x/a"]),
    (source_words.git_url, ["https://x.test/a b", "https://x.test/"]),
    (source_words.git_ref, ["", "-x", "a..b", "a b"]),
    (source_words.git_commit, ["main", "abcdef0", "g" * 40]),
    (source_words.sha256, ["0" * 63, "md5:" + "0" * 64]),
    (words.cuda_arch, ["9", "sm_90", "9.0b", "9.0 PTX"]),
    (words.finding_code, ["Weak", "weak_hash", "-x", "x-", "1x"]),
    (words.module, ["a-b", "a..b", "1a", ""]),
    (words.command, ["", "  ", "'x"]),
    (words.size, ["40 G", "G", "-1", "40X", "many"]),
    (words.count, ["-1", "x", "1.5"]),
    (words.percent, ["4", "%", "-1%"]),
    (words.cpu_list, ["", "a", "5-3", "1-", "1,,2"]),
    (words.time_span, ["", "soon", "5 lightyears", "-5s", "1" * 60 + "x"]),
    (words.schedule, ["a;b", "x\ny"]),
    (words.listen, ["", "x", "a b:80", "host:port"]),
    (words.absolute_path, ["x", "./x", "/a/../b", "~/x"]),
    (words.account, ["a b", "Ä", "-x"]),
    (words.signal, ["TERM", "15", "SIG"]),
    (words.variable, ["1A", "A-B", ""]),
]  # fmt: skip


@pytest.mark.parametrize(("check", "text", "normal"), GOOD)
def test_good(check: Check, text: str, normal: str) -> None:
    assert check(text) == normal
    assert check(normal) == normal


@pytest.mark.parametrize(("check", "text"), [(check, text) for check, all_ in BAD for text in all_])
def test_bad(check: Check, text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|is empty|quote is not closed|no channel"):
        check(text)


def test_a_login_is_never_repeated() -> None:
    for check in (words.http_url, words.channel):
        with pytest.raises(ValueError, match="login") as caught:
            check("https://user:secret@x.test/simple")
        assert "secret" not in str(caught.value)
    assert words.without_login("see https://u:secret@x.test/a") == "see https://…@x.test/a"


@pytest.mark.parametrize(
    "address", ["https://u:p@x.test/a", "https://u@x.test/a", "ssh://u:p@x.test/a"]
)
def test_a_login_is_not_repeated(address: str) -> None:
    with pytest.raises(ValueError, match="a login may not stand in a recipe") as caught:
        source_words.git_url(address)
    assert "u@" not in str(caught.value)
    assert ":p" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "version", "expected"),
    [
        ("gcc 12", (11, 2, 1), False),
        ("gcc 12", (12, 2, 0), True),
        ("gcc 12", (13, 3, 1), True),
        ("gcc >=12.3", (12, 2, 0), False),
        ("gcc ==12.*", (11, 2, 1), False),
        ("gcc ==12.*", (12, 2, 0), True),
        ("gcc ==12.*", (13, 3, 1), False),
        ("gcc ==12.3", (12, 2, 0), False),
    ],
)
def test_which_builds_will_do(text: str, version: tuple[int, ...], *, expected: bool) -> None:
    wish = compilers.parse(text)
    assert wish.takes(version) is expected
    assert compilers.parse(str(wish)) == wish
    assert compilers.own(text) == f"gcc {'.'.join(map(str, wish.version))}"
