"""The configuration: one frozen tree of pydantic models and the loaders that produce it."""
