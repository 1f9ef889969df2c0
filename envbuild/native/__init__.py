"""What is really inside binaries, wheels, conda packages and prefixes."""
