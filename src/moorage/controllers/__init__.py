"""What Kubernetes' controllers decide, as pure functions over objects.

`simulate`, `serve` and `explain` call them with their objects and carry the decisions out. Nothing
here waits, stores or watches.
"""
