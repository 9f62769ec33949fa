"""Benchmarks: what is minimised (objective), on what (datasets), by whom (solvers), how fast.

Run from the root of the repository:

    python -m benchmarks.run kernel --data DIR
    python -m benchmarks.run kernel --against OTHER_CHECKOUT

``race`` sweeps the tolerances of all tools on one problem, ``table`` fits everything once,
``growth`` takes more and more rows, ``contest`` times whatever can be done in several ways, and
``against`` compares two checkouts of the library. A module in ``suite`` is data for these, with a
function ``run(options) -> Report`` that is named in ``BENCHMARKS`` of ``benchmarks/run.py``.
"""
