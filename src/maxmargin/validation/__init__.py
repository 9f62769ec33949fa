"""Checks of parameters, rows, labels and weights."""
