"""Moves a site by the commands of ``docs/how-to/from-your-site.md``, from each kind of storage, and back."""
