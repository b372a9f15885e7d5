"""The benchmark of plone.pgcatalog; see run_benchmarks.py."""
