"""Measures searches: traces, the log of slow queries, counters."""
