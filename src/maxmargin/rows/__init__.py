"""Rows as solvers see them: in blocks, whether in memory, on disk or on a cluster; sources."""
