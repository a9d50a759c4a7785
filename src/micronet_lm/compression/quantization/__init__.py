"""Quantization of a trained run: calibration, quantization-aware training, sweeps.

Reading order: `config/quantization.py` (the recipe's section) → `layout/widths.py` (bits per
tensor) → `model/rounding.py` and `model/quantizers.py` (the arithmetic) → here `calibration.py`
(first scales, from ranges that `ranges.py` tracks) → `aware_training.py` (the plug-in of the one
loop) → `run.py` (all of it, for the verb) → `sweep.py` (many widths in one table).
"""

from micronet_lm.compression.quantization.aware_training import QuantizationAware
from micronet_lm.compression.quantization.calibration import calibrate
from micronet_lm.compression.quantization.run import quantize, quantized_recipe

__all__ = ["QuantizationAware", "calibrate", "quantize", "quantized_recipe"]
