"""The controllers: pure functions from objects to the writes that bring them to their spec.

A controller is a function `reconcile(obj, index, now)` that reads one object and related ones and
yields writes. It is level-triggered: called twice it yields the same, and nothing once the cluster
matches the spec. `tasks` names the controllers that a change concerns; `loop` runs them and
performs the writes.
"""
