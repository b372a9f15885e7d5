"""Texts: words, stems, queries, ranking, and the index type that stores them."""
