"""Incremental views: what plugins answered about every row, kept up to date from change logs.

`view.py` has the mechanism, `template.py` the graph, `cache.py` how long it is kept.
"""
