"""Readers of fitted models, ours or another library's."""
