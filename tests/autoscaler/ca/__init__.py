"""Cluster Autoscaler in small: its main loop, what it remembers, what it sends; per release."""
