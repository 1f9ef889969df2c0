"""`python -m envbuild`, the same as the `envbuild` command."""

import sys

from envbuild.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
