"""Which wheels are rebuilt, and how."""
