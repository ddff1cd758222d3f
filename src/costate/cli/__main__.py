"""`python -m costate.cli`, for where the `costate` script is not on the path."""

import sys

from costate.cli.main import main

sys.exit(main())
