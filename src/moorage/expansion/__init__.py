"""What controllers make of their objects: pods of workloads, nodes of pools, claims of templates.

A manifest from a repository says `kind: Deployment`; a scheduler sees pods. `expand` takes the
part of the controllers, once; the simulation asks `wanted` again whenever something changes.
Imports `api` only, so that whoever reads manifests can use it.
"""

from moorage.expansion.expand import expand

__all__ = ["expand"]
