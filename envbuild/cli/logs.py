"""What `-v` shows of the modules' own logs: the programs that are started; twice: the network."""

import logging
import sys

from envbuild.cli.output import mask


class _Masked(logging.Formatter):
    """Writes a record without logins."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text, logins masked."""
        return mask(super().format(record))


def show(verbosity: int) -> None:
    """Print log records on stderr.

    Args:
        verbosity: 1 for our own records, more for those of the libraries too.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Masked("%(message)s" if verbosity == 1 else "%(name)s: %(message)s"))
    logger = logging.getLogger("envbuild" if verbosity == 1 else None)
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
