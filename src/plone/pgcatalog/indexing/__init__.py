"""From object to row: extraction, pending changes of a transaction, and writing in the storage's hooks."""
