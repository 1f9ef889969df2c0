"""Local channels: a packed interpreter of this machine, archives, their index."""
