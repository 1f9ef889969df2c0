"""What is known, found by its name."""

import pytest

from envbuild.compat.explain import explain, names
from envbuild.compat.tables import load
from envbuild.pipeline import pages

FACTS = load()


def text(wanted: str) -> str:
    found = explain(FACTS, wanted)
    assert found is not None, wanted
    assert all(statement.sources for statement in found.statements)
    return " ".join(statement.text for statement in found.statements)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("torch==2.4.0", "torch 2.4.0 from PyPI is built with CUDA 12.1"),
        ("torch 2.4", "torch 2.4.1 from PyPI"),
        ("pytorch", "torch 2.11.0: CUDA 13.0, cuDNN 9.19.0.56, driver 580.65.06 or newer."),
        ("jax 0.4.28", "wants cuDNN <9.0,>=8.9.2.26"),
        ("jax", "jax 0.4.29 to "),
        ("cudnn 9.1", "Taken by pytorch 2.4.0"),
        ("nvidia-cudnn-cu12", "cuDNN 9.28.1"),
        ("cuda 12.4", "All of CUDA 12.4.1 works from driver 550.54.15 on."),
        ("cuda 12.8", "It is the first with code for 10.0."),
        ("cuda", "12.4 and cuDNN 9 must never be mixed. False"),
        ("gcc 13", "gcc 13 is taken by nvcc of CUDA 12.4, 12.5"),
        ("nvcc 12.4", "GCC 6.0 to 13"),
        ("550.54.15", "runs CUDA up to 12.4"),
        ("driver 590", "580 was the last branch for cards of 7.0"),
        ("driver 535", "It does not know cards of 10.0 (Blackwell)"),
        ("h100", "80 GB of HBM3"),
        ("gpu b200", "The first known pytorch with code for it is torch 2.7.0 cu128"),
        ("sm_100", "10.0 is Blackwell"),
        ("Hopper", "9.0 is Hopper"),
        ("transformer-engine", "value dimension of 192"),
        ("torch 2.9.1", "cuDNN is passed over"),
        ("no kernel image", "Machine code for X.y"),
        ("cu124", "PyPI has none of them"),
        ("Xid 79", "What to do: "),
        ("daemon-reload", "loses its cards at the next systemctl daemon-reload"),
        ("nvidia-frontend", "char-nvidia-frontend allows nothing any more"),
        ("cudnn sdpa", "turned it off by default"),
    ],
)
def test_something_is_known(wanted: str, told: str) -> None:
    assert told in text(wanted)


def test_a_failure_of_another_version_is_not_told() -> None:
    assert "Known to fail" not in text("torch 2.4.0")


@pytest.mark.parametrize("wanted", ["", "voodoo", "pytorch 9.9", "driver 551", "gcc 99", "1.2.3"])
def test_nothing_is_known(wanted: str) -> None:
    assert explain(FACTS, wanted) is None


@pytest.mark.parametrize("claim", FACTS.claims, ids=lambda row: row.id)
def test_every_claim_has_its_verdict(claim: object) -> None:
    told = text(claim.id)  # type: ignore[attr-defined]
    words = ("True: ", "Partly true: ", "False: ", "Not verified: ")
    assert told.startswith("People say: ")
    assert any(word in told for word in words)


def test_names_are_unique_over_the_tables() -> None:
    rows = (FACTS.topics, FACTS.gpus, FACTS.claims, FACTS.known_bad)
    assert len({row.id for table in rows for row in table}) == sum(map(len, rows))
    assert len(names(FACTS)) > 100


def test_every_name_is_explained_under_it() -> None:
    for name, kind in names(FACTS).items():
        found = explain(FACTS, name)
        assert found is not None, name
        assert (found.name, found.kind) == (name, kind)


def test_what_to_see_next_is_there() -> None:
    for topic in FACTS.topics:
        for name in topic.see:
            assert name in pages.codes(pages.FINDINGS) or explain(FACTS, name), name
