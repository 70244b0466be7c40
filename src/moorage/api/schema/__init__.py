"""The fields of Kubernetes' kinds: names, types and protobuf numbers, from one table."""
