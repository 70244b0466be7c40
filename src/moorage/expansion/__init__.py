"""What controllers create: pods of workloads, nodes of pools, claims of templates.

A manifest from a repository has `kind: Deployment`; a scheduler sees pods. `ControllerHost` runs
the controllers of `moorage.controllers` on a cluster of structs: for a simulation in virtual time,
and once for `expand`, which answers questions that have no time.
"""

from moorage.expansion.expand import Expansion, expand, expansion

__all__ = ["Expansion", "expand", "expansion"]
