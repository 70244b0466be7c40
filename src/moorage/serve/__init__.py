"""The playground: a Kubernetes-style API in one process, for kubectl, clients and `moorage run`."""
