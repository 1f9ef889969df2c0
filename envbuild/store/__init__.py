"""Generations on disk: making, checking, switching and collecting them."""
