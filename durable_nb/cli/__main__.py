"""`python -m durable_nb.cli` is the command `durable-nb`."""

import sys

from durable_nb.cli import main

if __name__ == "__main__":
    sys.exit(main())
