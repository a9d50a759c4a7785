"""Print facts about torch and its products on this machine, in a separate process.

`python -m micronet_lm.training.precision.torch_report [again]` prints one JSON object. The process
is separate so that its caller neither imports torch nor crashes with it.
"""

import json
import os
import sys
from dataclasses import asdict

import torch

from micronet_lm.training.precision.verdict import ISA_VARIABLE, machine_verdict, verdict_file

SETTINGS = (
    *(ISA_VARIABLE, "ATEN_CPU_CAPABILITY", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
    *("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"),
)
"""Environment variables that change what torch does."""


def main() -> None:
    """Print the facts; measure what is not known yet, or everything `again`."""
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
