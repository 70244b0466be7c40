"""Metrics under kube-scheduler's names.

families.py     every metric: its name, labels and buckets
tallies.py      counters and histograms that cost next to nothing to add to
facts.py        counts the facts of the journal
gauges.py       current values, read from the scheduler on request
timing.py       durations of plugins and extension points, as the meter of a profile
meter.py        all of them for one scheduler, as the text that Prometheus reads
stopwatches.py  where the time of a run goes, for `simulate --profile`

Clocks are parameters; this package has no HTTP.
"""
