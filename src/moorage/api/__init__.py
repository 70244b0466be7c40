"""Kubernetes objects as frozen data: what a scheduler reads of them, and nothing else."""
