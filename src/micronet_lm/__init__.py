"""Language models that fit anywhere."""

__version__ = "0.1.0"
