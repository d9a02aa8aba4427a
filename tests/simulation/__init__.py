"""Deterministic simulation: the whole provider against the simulated cloud, with trouble and crashes at every effect.

One seed is one story, the same on every machine. See `__main__` for how to run many.
"""
