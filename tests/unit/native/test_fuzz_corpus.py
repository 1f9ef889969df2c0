"""Everything that fuzzing kept: each input comes to an end, and raises nothing but what is said."""

import pytest
from fuzz.readers import READERS
from fuzz.seeds import inputs


@pytest.mark.parametrize("reader", READERS)
def test_kept_inputs(reader: str) -> None:
    kept = inputs(reader)
    assert kept
    for data in kept.values():
        READERS[reader](data)
