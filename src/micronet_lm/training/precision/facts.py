"""Tell, in a process of its own, what torch is here and what its products can do.

`python -m micronet_lm.training.precision.facts [again]` prints one JSON object. It is a process of
its own so that who asks neither needs torch nor dies of it.
"""

import json
import os
import sys
from dataclasses import asdict

import torch

from micronet_lm.training.precision.verdict import ISA_VARIABLE, machine_verdict, verdict_file

SETTINGS = (ISA_VARIABLE, "ATEN_CPU_CAPABILITY", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that change what torch does."""


def main() -> None:
    """Print what is known; measure what is not, or all of it `again`."""
    verdict = machine_verdict(again="again" in sys.argv[1:])
    trials = [{**asdict(t), "gain": t.gain, "says": str(t)} for t in verdict.trials]
    told = {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "onednn": torch.backends.mkldnn.is_available(),
        "gpus": torch.cuda.device_count(),
        "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ},
        "precision": verdict.precision,
        "onednn_max_cpu_isa": verdict.isa,
        "trials": trials,
        "broken": verdict.broken,
        "kept_in": str(verdict_file()),
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
