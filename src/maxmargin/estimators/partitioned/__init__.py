"""Machines on parts of the input space."""
