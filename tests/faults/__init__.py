"""The whole provider over the simulated API: what goes wrong there, one by one, through the real SDK."""
