"""What searches took: traces, the log of slow queries, counters."""
