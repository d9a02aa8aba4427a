"""The only road into the log: decide, append, fold, publish."""
