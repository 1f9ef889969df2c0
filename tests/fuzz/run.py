"""Give a reader what atheris invents: `python tests/fuzz/run.py READER FOLDER [libFuzzer options]`.

FOLDER keeps what reached new code; with `-merge=1 FOLDER OTHER` the least of OTHER that reaches as
much is copied there. An input is a bug where the reader raises what it does not document, takes
more than two seconds of processor time, or more than 200 MiB.
"""

import resource
import sys
import time
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent))
with atheris.instrument_imports(include=["envbuild.native", "zipfile"]):
    import zipfile  # noqa: F401 - instrumented before the readers have it

    from fuzz.readers import READERS
from fuzz.seeds import inputs

MOST_S = 2.0
MOST_KIB = 200 << 10
OPTIONS = ("-max_len=4096", "-timeout=60", "-rss_limit_mb=1024", "-print_final_stats=1")
OF_READER = {
    "sparse": ("-max_len=16384",),  # GPU code of at most 4 KiB is kept whole
    # zlib-ng shows no coverage, by which short streams would be as good as long ones
    "deflated": ("-keep_seed=1", "-reduce_inputs=0", "-len_control=0"),
}


class Costly(Exception):
    """An input that takes too long or too much memory."""


def main() -> None:
    """Fuzz until libFuzzer is told to stop."""
    name, options = sys.argv[1], sys.argv[2:]
    read = READERS[name]
    for folder in [Path(one) for one in options if not one.startswith("-")][:1]:
        folder.mkdir(parents=True, exist_ok=True)
        for known, data in inputs(name).items():
            folder.joinpath(known).write_bytes(data)
    before_kib = 0

    def one(data: bytes) -> None:
        nonlocal before_kib
        begun = time.process_time()
        read(data)
        took_s = time.process_time() - begun
        peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before_kib = before_kib or peak_kib
        if took_s > MOST_S or peak_kib - before_kib > MOST_KIB:
            message = f"{took_s:.1f} s, {(peak_kib - before_kib) >> 10} MiB"
            raise Costly(message)

    again = f"{sys.executable} {sys.argv[0]} {name}"  # what -merge starts, through a shell
    atheris.Setup([again, *OPTIONS, *OF_READER.get(name, ()), *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
