"""Which SQL indexes would help."""
