"""The cluster as columns: one row per node, one array per quantity."""
