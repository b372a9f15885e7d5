"""Full-text search: words, stems, queries, ranking, and the text index."""
