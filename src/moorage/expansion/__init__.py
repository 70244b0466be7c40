"""What controllers create: pods of workloads, nodes of pools, claims of templates.

A manifest from a repository has `kind: Deployment`; a scheduler sees pods. `expand` does once what
the controllers would do; the simulation calls `reconcile` whenever something changes. Imports `api`
only, so that every reader of manifests can use it.
"""

from moorage.expansion.expand import expand

__all__ = ["expand"]
