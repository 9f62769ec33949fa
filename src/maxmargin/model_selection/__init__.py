"""Which parameters: paths along C, searches over grids, criteria from one fit."""
