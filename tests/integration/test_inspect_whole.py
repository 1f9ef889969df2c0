"""What `envbuild inspect` says of all files together."""

import json
from pathlib import Path

import pytest
from fuzz.made import container, elf, entry, packed_wheel
from integration.locking import envbuild

PTX = 1
LIBC = {"NEEDED": ["libc.so.6"]}
GCC, RUST = b"\0GCC: (GNU) 12.2.0\0", b"\0GCC: (GNU) 8.5.0\0rustc version 1.81.0 (eeb90cda1)\0"


def wheel(folder: Path) -> Path:
    small = container(entry(80, 0x11), entry(90, 0x11), entry(80, 0x11, kind=PTX))
    packed = container(entry(90, 0x8011), entry(100, 0x108011))
    texts = {"NEEDED": ["libtorch.so", "libc.so.6"], "RUNPATH": ["$ORIGIN/../torch/lib"]}
    driver = {"NEEDED": ["libcuda.so.1", "libcudart.so.12", "libinside.so"]}
    files = {
        "a/small.so": elf(texts=texts, sections={".comment": GCC, ".nv_fatbin": small}),
        "a/packed.so": elf(texts=driver, sections={".comment": RUST, ".nv_fatbin": packed}),
        "a/libinside.so": elf(texts={"NEEDED": ["libc.so.6"]}),
    }
    path = folder / "a-1-py3-none-linux_x86_64.whl"
    path.write_bytes(packed_wheel(files, tag="py3-none-linux_x86_64"))
    return path


def test_the_whole_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert envbuild("inspect", f"{wheel(tmp_path)}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[5:] == [
        "compilers: GCC 8.5.0, rustc 1.81.0, GCC 12.2.0; unknown: a/libinside.so",
        "GPU code that each of the 2 libraries with some has: sm_90",
        "driver for its zstd-compressed GPU code: 550.54.14 or newer (CUDA 12.4)",
        "driver for its PTX: 580.65.06 or newer (CUDA 13.0)",
        "CUDA runtime: shared in a/packed.so; static in a/small.so",
        "needed of the environment: libtorch.so",
        "needed of the driver: libcuda.so.1",
        "needed of the host: libc.so.6",
        "needed, and found by nothing that the files say: libcudart.so.12",
    ]


def note(tool: str, version: str, options: str) -> bytes:
    """Return `.note.nv.tkinfo` as ptxas 13.0 writes it."""
    told = (tool, f"Cuda compilation tools, release 13.0, V{version}", "Build cuda_13.0.r13.0/1")
    return b"NVIDIA Corp\0\2\0\0\0" + bytes(1) + "\0".join([*told, f"{options} ", ""]).encode()


def test_a_file_of_gpu_code_alone_says_its_tool_and_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        f"a/{name}.cubin": elf(kind=2, machine=190, sections={".note.nv.tkinfo": content})
        for name, content in {
            "specific": note("ptxas", "13.0.88", "-arch sm_90a -m 64"),
            "family": note("ptxas", "13.0.88", "-m 64 -arch sm_100f"),
            "other": b"something else",
        }.items()
    }
    path = tmp_path / "a-1-py3-none-any.whl"
    path.write_bytes(packed_wheel(files))
    assert envbuild("inspect", f"{path}", "--json", "--against", "gpu=b200") == 0
    told = json.loads(capsys.readouterr().out)
    read = {one["path"]: (one["compilers"], one["gpu_code"]) for one in told["files"]}
    assert read == {
        "a/family.cubin": (["ptxas 13.0.88"], ["sm_100f"]),
        "a/other.cubin": ([], []),
        "a/specific.cubin": (["ptxas 13.0.88"], ["sm_90a"]),
    }
    assert told["findings"] == []  # which of them is loaded is up to the program


X86, ARM = elf(machine=62, texts=LIBC), elf(machine=183, texts=LIBC, alignment=65536)
MUSL = elf(texts={"NEEDED": ["libc.musl-x86_64.so.1"]})
MODULE = "a/b.cpython-311-x86_64-linux-gnu.so"


@pytest.mark.parametrize(
    ("tag", "files", "says"),
    [
        ("py3-none-any", {"a/b.so": X86}, "for any platform, and a/b.so is x86_64 code"),
        ("py3-none-any", {"a/b.so.debug": elf(debug=True, sections={".comment": GCC})}, None),
        (
            "py3-none-manylinux_2_17_x86_64",
            {"a/b.so": ARM},
            "for x86_64, and a/b.so is aarch64 code",
        ),
        ("py3-none-manylinux_2_17_aarch64", {"a/b.so": ARM, "a/data.so": X86}, None),
        ("py3-none-linux_riscv64", {"a/b.so": X86}, None),  # of which nothing is known
        ("py3-none-musllinux_1_2_x86_64", {"a/b.so": X86}, "for musl, and a/b.so needs glibc"),
        ("py3-none-musllinux_1_2_x86_64", {"a/b.so": X86, "a/c.so": MUSL}, None),
        ("py3-none-manylinux_2_17_x86_64", {"a/b.so": MUSL}, "for glibc, and a/b.so needs musl"),
        ("py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64", {"a/b.so": MUSL}, None),
        ("cp312-cp312-linux_x86_64", {MODULE: X86}, f"for cp312, and {MODULE} is for cp311"),
        ("cp311-cp311-linux_x86_64", {MODULE: X86}, None),
        ("cp311.cp312-none-linux_x86_64", {MODULE: X86}, None),
        ("py3-none-linux_x86_64", {MODULE: X86}, None),
    ],
)
def test_a_tag_that_the_content_contradicts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    tag: str,
    files: dict[str, bytes],
    says: str | None,
) -> None:
    path = tmp_path / f"a-1-{tag}.whl"
    path.write_bytes(packed_wheel(files, tag=tag))
    assert envbuild("inspect", f"{path}", "--json") == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    told = [one["what"] for one in found if one["code"] == "tag-contradicted"]
    assert told == ([] if says is None else [f"it is tagged {says}"])


def test_the_whole_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert envbuild("inspect", f"{wheel(tmp_path)}", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["compilers"] == ["GCC 8.5.0", "rustc 1.81.0", "GCC 12.2.0"]
    drivers = {file["path"]: file["drivers"] for file in told["files"]}
    assert drivers == {
        "a/libinside.so": [],
        "a/packed.so": [{"for": "zstd", "cuda": "12.4", "driver": "550.54.14"}],
        "a/small.so": [{"for": "ptx", "cuda": "13.0", "driver": "580.65.06"}],
    }
