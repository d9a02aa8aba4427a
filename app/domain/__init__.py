"""Pure data and functions: events, state machines, deciders, folds. No input or output, no clock, no random."""
