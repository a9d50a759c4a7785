"""One HTML file with the engine and a model inside, which works without a network."""

from micronet_lm.page.build import page, write_page

__all__ = ["page", "write_page"]
