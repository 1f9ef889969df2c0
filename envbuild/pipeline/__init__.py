"""The compositions: a lock from a recipe, a generation from a lock."""
