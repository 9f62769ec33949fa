"""Benchmarks, in two packages: ``beside`` other tools, and ``against`` another checkout.

Run from the root of the repository:

    python -m benchmarks.run kernel --data DIR
    python -m benchmarks.run kernel --against OTHER_CHECKOUT

``contest`` times whatever can be done in several ways, and ``beside.race`` sweeps the tolerances of
all tools on one problem. A benchmark is a function ``run(options) -> Report`` that is named in
``benchmarks/run.py``.
"""
