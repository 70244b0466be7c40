"""A real cluster, on asyncio: list and watch in, bindings, patches, deletions and Events out.

run.py        the loop on wall-clock time
reflector.py  list and watch one kind -> observations, whatever the network does
performer.py  effect -> API call -> outcome
lease.py      whether we lead
client.py     one HTTP client; kubeconfig.py and credentials.py say where and as whom

How a decision is made is not known here.
"""
