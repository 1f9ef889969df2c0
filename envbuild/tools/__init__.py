"""One module for each thing outside this process: programs, engines, the network, files."""
