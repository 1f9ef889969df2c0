"""Reading NVML of eight H100, played by the tests' simulator, against nvidia-ml-py alone."""

import json
import subprocess
import sys
from pathlib import Path

from harness import Failed, Pair, Side

ROOT = Path(__file__).parents[1]
PYTHON = sys.executable
WORKER = (PYTHON, "-I", "-m", "envbuild.tools.nvml_worker")

sys.path.insert(0, str(ROOT / "tests"))
from nvmlsim.simulator import LIBRARY, place  # noqa: E402 - the tests' helpers are not installed


def pairs(folder: Path) -> list[Pair]:
    """Return the pair; both sides make as many calls.

    Ours starts a process that starts the one that asks, so theirs has that start-up added.
    """
    root = place(folder / "driver", "h100x8-idle")
    library = str(root / "usr/lib64" / LIBRARY)
    bare = (PYTHON, str(ROOT / "benchmarks" / "bare_nvml.py"), library)
    check_calls(bare, library)
    read = "from envbuild.host.gpus import read_nvml; read_nvml(Path(sys.argv[1]))"
    code = f"import sys; from pathlib import Path; {read}"
    start = (PYTHON, "-c", "import sys; from pathlib import Path; import envbuild.host.gpus")
    ours = Side(name="read_nvml", argv=[(PYTHON, "-c", code, str(root))], env={})
    theirs = Side(name="start-up, and nvidia-ml-py", argv=[start, bare], env={})
    return [Pair(name="readings of 8 cards", ours=ours, theirs=theirs, bound=1.5, repeat=15)]


def check_calls(bare: tuple[str, ...], library: str) -> None:
    """Raise where the two do not make as many calls."""
    request = json.dumps({"descriptor": 1, "libraries": [library]})
    said = subprocess.run(WORKER, input=request, capture_output=True, text=True, check=True)
    ours = said.stdout.count(', "nvml')
    theirs = int(subprocess.run(bare, capture_output=True, text=True, check=True).stdout)
    if ours != theirs:
        message = f"we make {ours} calls, the bare process {theirs}"
        raise Failed(message)
