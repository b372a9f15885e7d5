"""Search by meaning: vectors of chunks of text, made by an embedder after the save and stored in the site's own database."""
