"""Shares of cards: who gets which part, how it is kept apart, and what was made for it."""
