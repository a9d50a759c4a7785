"""`python -m micronet_lm`: the same as the command `micronet`; `torchrun -m` needs it."""

import sys

from micronet_lm.cli.main import main

sys.exit(main())
