"""The process that loads NVML: asks every card everything, and answers as it goes.

A call into NVML may hang for good inside the driver, and then cannot be ended from within; so it is
made here, where it can be ended with its process. See `nvml_asking` for what is written.
"""

import ctypes
from typing import Any

import pynvml

from envbuild.tools.nvml_asking import Asking, Cell, failure, refused, serve
from envbuild.tools.nvml_parts import ask_fabric, ask_fields, ask_mig, ask_nvlinks
from envbuild.tools.nvml_questions import QUESTIONS, Question


def answer(request: dict[str, Any]) -> None:
    """Ask for all there is, and write the answers to the descriptor in the request."""
    ask = Asking(request["descriptor"])
    ask.path = "init"
    ask.announce("dlopen")
    missing = load(request["libraries"])
    if missing is not None:
        ask.say("init", missing)
        ask.end()
        return
    begun = _ask(ask, "init", "nvmlInit")
    _ask(ask, "library", "nvmlSystemGetNVMLVersion")  # it answers without nvmlInit too
    if "value" in begun:
        _ask(ask, "driver", "nvmlSystemGetDriverVersion")
        _ask(ask, "cuda", "nvmlSystemGetCudaDriverVersion_v2")
        count = _ask(ask, "count", "nvmlDeviceGetCount")
        for card in range(count.get("value", 0)):
            _ask_card(ask, card)
    ask.end()


def load(libraries: list[str]) -> Cell | None:
    """Load the first of these libraries that can be, or return why none can.

    pynvml loads `libnvidia-ml.so.1` by that name, and a loaded library of that SONAME is it.
    """
    problems = []
    for library in libraries:
        try:
            ctypes.CDLL(library)
        except OSError as error:
            problems.append(str(error))
        else:
            return None
    return refused(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "dlopen") | {"text": problems[0]}


def _ask(ask: Asking, path: str, name: str) -> Cell:
    ask.path = path
    said = ask.cell(name)
    ask.say(path, said)
    return said


def _ask_card(ask: Asking, card: int) -> None:
    ask.card, ask.path = card, ""
    handle = ask.cell("nvmlDeviceGetHandleByIndex", card)
    if "error" in handle:
        ask.say("", handle)
        return
    gpu = handle["value"]
    said: dict[str, Cell] = {}
    for question in QUESTIONS:
        said |= _answers(ask, question, gpu)
    ask_fields(ask, gpu)
    ask_nvlinks(ask, gpu)
    ask_fabric(ask, gpu)
    ask_mig(ask, gpu, said["mig.current"])


def _answers(ask: Asking, question: Question, gpu: Any) -> dict[str, Cell]:  # noqa: ANN401
    """Ask one question, say the fields it answers, and return them."""
    ask.path = question.paths[0]
    try:
        found = ask.first(*((name, gpu, *more) for name, *more in question.calls))
        cells = question.take(found)
    except Exception as error:  # noqa: BLE001 - as for one call
        cells = (failure(error),) * len(question.paths)
    answers = dict(zip(question.paths, cells, strict=True))
    for path, said in answers.items():
        ask.say(path, said)
    return answers


if __name__ == "__main__":
    serve(answer)
