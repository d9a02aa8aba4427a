"""The operator's door: a local socket to the running server, for commands that are recorded with their reason."""
