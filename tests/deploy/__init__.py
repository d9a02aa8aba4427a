"""What `deploy/` holds is valid, agrees with itself, and runs as far as this machine can run it."""
