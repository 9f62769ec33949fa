"""Learners of outputs with structure."""
