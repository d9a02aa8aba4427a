"""The instance aggregate: commands, events, state, decide."""
