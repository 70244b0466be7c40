"""Facts, and what can be read off a scheduler, under kube-scheduler's own metric names.

families.py   every metric: its name, labels and buckets
tallies.py    counters and histograms that cost next to nothing to add to
facts.py      the journal's facts -> tallies
gauges.py     how things stand, read when somebody asks
timing.py     how long plugins take; only for a scheduler that is told to measure

Who asks is not known here, nor what time it is: clocks are handed in.
"""
