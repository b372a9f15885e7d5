"""Object to row: extraction, what is pending in a transaction, and the writing in the storage's hooks."""
