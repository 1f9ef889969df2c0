"""Exactly what is installed: the lock, its two files, what it answers and what changed."""
