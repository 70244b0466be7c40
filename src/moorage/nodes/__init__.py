"""The node table: a row per node, a NumPy column per quantity; change logs and counters."""
