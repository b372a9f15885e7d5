"""Readers of formats, run in the process of ``child``: standard library, lxml, pypdfium2 and xberg, nothing of Zope."""
