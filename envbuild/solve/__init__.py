"""Asking the two solvers: conda by py-rattler, PyPI by uv."""
