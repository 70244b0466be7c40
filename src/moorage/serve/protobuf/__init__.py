"""Kubernetes' protobuf encoding of objects: what client-go sends and asks for by default."""
