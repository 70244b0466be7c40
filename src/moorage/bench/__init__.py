"""How many pods per second: shapes of clusters and pods, and a stopwatch around the scheduler."""
