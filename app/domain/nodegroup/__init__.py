"""The node group aggregate: commands, events, state, decide."""
