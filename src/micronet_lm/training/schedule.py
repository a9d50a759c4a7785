"""The learning rate: linear warm-up, then half a cosine down to the final rate."""

import math

from micronet_lm.config import TrainConfig


def learning_rate(config: TrainConfig, step: int) -> float:
    """Return the rate of step number `step`, counted from 0."""
    if step < config.warmup:
        return config.learning_rate * (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    share = 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
    low = config.final_learning_rate
    return low + (config.learning_rate - low) * share
