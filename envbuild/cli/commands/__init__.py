"""One module per command; each has a click command named `command`."""
