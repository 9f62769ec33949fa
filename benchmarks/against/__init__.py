"""Another checkout beside this one: the same fits by turns, to see what became slower."""
