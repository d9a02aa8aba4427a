"""Optional work on the cluster that our machines join. Nothing else depends on it."""
