"""A site moved by the very steps of ``docs/how-to/from-your-site.md``, from each kind of storage, and back."""
