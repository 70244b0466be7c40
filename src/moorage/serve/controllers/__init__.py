"""What makes the playground live: small controllers, each a decision and nothing else.

A controller is a function `reconcile(obj, view, now)` that looks at one object and those around
it, and answers with the writes that bring the cluster closer to what the object asks for. It is
level-triggered: asked twice, it wants the same, and nothing once that is done. `loop` carries the
writes out, and knows when to ask again.
"""
