"""Grid search with cross-validation, on one Gram matrix per kernel."""
