"""All separators instead of one: BayesPointClassifier."""
