"""The weight of the soft labels: teacher annealing (section 4.1; Clark et al. 2019)."""

from micronet_lm.config import DistillConfig


def soft_weight(config: DistillConfig, step: int, steps: int) -> float:
    """Return λ_soft(t) = λ_max − t/T · (λ_max − λ_min), for step t of T, counted from 0."""
    return config.weight_max - step / steps * (config.weight_max - config.weight_min)
