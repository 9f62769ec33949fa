"""Solvers: settings in, a generator of iterates out; they neither count nor stop."""
