"""The benchmarks: one module each, with ``run(options) -> Report``."""
