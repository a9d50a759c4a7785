"""Settings of the whole test suite."""

import os

# Tests compute tiny things, several of them at once: threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
