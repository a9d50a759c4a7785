"""From a trained run to integers: calibration, training with the rounding in force, sweeps.

A reader's way: `config/quantization.py` (what a recipe may say) → `layout/widths.py` (bits per
tensor) → `model/rounding.py` and `model/quantizers.py` (the arithmetic) → here `calibration.py`
(first scales, from ranges that `ranges.py` tracks) → `aware_training.py` (the plug-in of the one
loop) → `run.py` (the whole, as the verb does it) → `sweep.py` (many widths in one table).
"""

from micronet_lm.compression.quantization.aware_training import QuantizationAware
from micronet_lm.compression.quantization.calibration import calibrate
from micronet_lm.compression.quantization.run import quantize, quantized_recipe

__all__ = ["QuantizationAware", "calibrate", "quantize", "quantized_recipe"]
