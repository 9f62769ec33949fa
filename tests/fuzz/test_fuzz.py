"""Mutants of the corpus are refused by the documented error, or accepted; nothing else."""

import pytest

from tests.fuzz.mutants import draw_mutants
from tests.fuzz.targets import TARGETS, read_corpus

pytestmark = pytest.mark.wide


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_mutants(name: str) -> None:
    target, corpus = TARGETS[name], read_corpus(name)
    for data in (*corpus, *draw_mutants(corpus, target.inputs, 0, target.mutate)):
        try:
            target.run(data)
        except Exception as unexpected:
            raise AssertionError(f"{name}: {data!r}") from unexpected
