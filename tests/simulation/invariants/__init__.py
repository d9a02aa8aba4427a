"""What must hold, each a small function whose name is the claim."""
