"""Golden-triangle environments for NVIDIA GPU hosts: recipe, lock, generation, unit."""

__version__ = "0.1.0"
