"""The text of files: extracted after the save, in a process of its own, and stored by the digest of the bytes."""
