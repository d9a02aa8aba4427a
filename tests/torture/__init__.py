"""Torture: the real process on a real file against the real simulator over HTTP, killed at random instants.

What the simulation cannot have, this has: the operating system, threads, sockets, SQLite's own files, and kills that no
code of ours prepares. Everything that is chosen is chosen from a seed; when it happens is up to the machine.
"""
