"""Jobs that commits leave to be done after them: their table, and the workers that do them."""
