"""The text of files: kept by their bytes, extracted after the save, in a process of its own."""
