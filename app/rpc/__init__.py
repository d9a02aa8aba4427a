"""The gRPC face: Cluster Autoscaler external provider, health, reflection."""
