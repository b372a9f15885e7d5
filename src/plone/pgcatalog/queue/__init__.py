"""Jobs that are done after the commits that require them: their table, and the workers that do them."""
