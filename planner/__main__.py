"""`python -m planner`: the command `plan`."""

import sys

from planner.cli import main

sys.exit(main())
