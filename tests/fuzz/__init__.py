"""Random bytes for every parser: they may be refused, and nothing else may happen.

``./check`` runs some thousands of mutants of the corpus, always the same ones. ``python -m
tests.fuzz TARGET --runs N`` draws N others, and keeps what was refused in a wrong way in
``tests/fuzz/found``: mend it, then add the input to the corpus.
"""
