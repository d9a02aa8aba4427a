"""Everything around the autoscaler: a cluster, machines that join it, the provider under test, one clock for all."""
