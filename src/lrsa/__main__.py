"""`python -m lrsa`: the same as `lrsa`."""

import sys

from lrsa.cli.program import main

sys.exit(main())
