"""Models for all C: the regularization path."""
