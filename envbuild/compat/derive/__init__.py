"""Rows of framework builds, read anew from what an index has of them."""
