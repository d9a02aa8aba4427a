"""Optional work on the Kubernetes side (off by default)."""
