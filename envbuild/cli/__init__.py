"""The command line: it parses, calls one function and prints."""
