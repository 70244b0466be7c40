"""A real cluster, on asyncio: list and watch in; bindings, patches, deletions and Events out.

run.py              LiveScheduler: the scheduling loop on real time; start.py constructs it
reflector.py        list and watch one kind -> observations
performer.py        effects -> API calls -> outcomes; event_recorder.py writes Events
leader_election.py  the lease: whether this scheduler is the leader
extenders.py        calls to HTTP extenders
client.py           requests to the API server: retries, rate limit, credentials; http1.py below it
kubeconfig.py       where the cluster is, and our credentials
server.py           the secure port: health, metrics, configuration, dumps

Knows nothing of how a decision is made.
"""
