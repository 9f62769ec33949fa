"""Benchmarks beside other tools: a module each, with ``run(options) -> Report``."""
