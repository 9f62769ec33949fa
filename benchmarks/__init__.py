"""Benchmarks: what is compared (objective), on what (datasets), by whom (solvers), and how fast.

Run from the root of the repository:

    python -m benchmarks.run perceptron --data DIR

To add one, write a module in ``benchmarks/suite`` with a function ``run(options) -> Report`` and
name it in ``BENCHMARKS`` of ``benchmarks/run.py``.
"""
