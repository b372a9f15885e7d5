"""Results of searches: lazy sequences of brains, their rows and the cache."""
