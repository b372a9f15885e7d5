"""SQL to results: lazy sequences of brains."""
