"""Readers of models: how one was found, step by step, and the code that makes one like it."""

from maxmargin.inspection.code import Code, write_code
from maxmargin.inspection.steps import SolverStep, solver_steps, update_rows

__all__ = ["Code", "SolverStep", "solver_steps", "update_rows", "write_code"]
