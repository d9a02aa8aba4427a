"""One module per job. Jobs know nothing of the scheduler."""
