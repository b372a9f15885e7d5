"""Compiles query dicts to SQL; needs no connection and no Plone site."""
