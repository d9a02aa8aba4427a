"""What `doctor` looks at. Each check is a generator of findings; every finding that is not fine has a remedy."""
