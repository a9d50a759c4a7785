"""What makes a trained model smaller or a small model better: so far, distillation."""

from micronet_lm.compression.distillation import Distillation, distill
from micronet_lm.compression.softlabels import SoftLabels, write_soft_labels

__all__ = ["Distillation", "SoftLabels", "distill", "write_soft_labels"]
