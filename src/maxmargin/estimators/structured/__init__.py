"""Learners of structured outputs."""
