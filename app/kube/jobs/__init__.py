"""One module per piece of work on the cluster. None knows of the scheduler."""
