"""A Kubernetes-style API server with controllers and scheduler in one process, for kubectl."""
