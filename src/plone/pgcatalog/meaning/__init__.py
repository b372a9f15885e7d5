"""Search by meaning: texts in chunks, their vectors in the site's own database, made by an embedder after the save."""
