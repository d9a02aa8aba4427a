"""The Kubernetes cluster that our machines join: commands, events, state, decide."""
