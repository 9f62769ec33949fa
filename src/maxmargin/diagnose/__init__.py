"""Which model the data need: the ladder of separability, with evidence for every rung."""
