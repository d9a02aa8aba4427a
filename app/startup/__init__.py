"""Startup scripts: what a machine is told to do at its first boot."""
