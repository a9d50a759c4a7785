"""Shapes of models for tests, in one place: as small as what they show allows.

Where two sizes could be mixed up, such as the widths of keys and values, they differ.
"""

from typing import Any

from micronet_lm.config import ModelConfig


def changed(shape: ModelConfig, **values: Any) -> ModelConfig:
    """Return a shape with some of its values changed, checked like any other."""
    return ModelConfig.model_validate({**shape.model_dump(), **values})


SMALL = ModelConfig(
    vocabulary=90,
    cutoffs=(20, 50),
    embedding_widths=(16, 8, 4),
    width=16,
    layers=2,
    heads=2,
    key_width=6,
    value_width=5,
    ffn_width=24,
    context=7,
)
"""Three bins; the first one's rows are as wide as the model."""

PROJECTED = changed(SMALL, embedding_widths=(12, 8, 4), layers=3)
"""The first bin's rows are narrower than the model, too."""

EVEN_BINS = changed(SMALL, vocabulary=60, cutoffs=(20, 40), context=6)
"""Three bins of 20 words: the bin of a word is plain to see."""

TWO_BINS = changed(SMALL, vocabulary=60, cutoffs=(20,), embedding_widths=(16, 4), context=6)


def softmax_shape(cutoffs: tuple[int, ...], embedding_widths: tuple[int, ...]) -> ModelConfig:
    """Return a shape of 100 words in any bins, for tests of the adaptive softmax."""
    return ModelConfig(
        vocabulary=100,
        cutoffs=cutoffs,
        embedding_widths=embedding_widths,
        width=16,
        layers=2,
        heads=2,
        key_width=4,
        value_width=4,
        ffn_width=32,
        context=5,
    )


SOFTMAXES = {
    "full": softmax_shape((), (16,)),
    "two bins": softmax_shape((20,), (16, 4)),
    "four bins": softmax_shape((10, 30, 60), (16, 8, 4, 1)),
    "projected first bin": softmax_shape((10, 30), (12, 8, 4)),
}

COUNTABLE = ModelConfig(
    vocabulary=40,
    cutoffs=(10, 25),
    embedding_widths=(12, 6, 3),
    width=12,
    layers=2,
    heads=3,
    key_width=4,
    value_width=5,
    ffn_width=14,
    context=6,
)
"""Few enough operations to perform each as a call of Python."""

WATCHED = ModelConfig(
    vocabulary=500,
    cutoffs=(100, 250),
    embedding_widths=(48, 16, 4),
    width=48,
    layers=3,
    heads=4,
    key_width=12,
    value_width=10,
    ffn_width=96,
    context=33,
)
"""For counting the matrix products that torch is asked for."""

STORED = ModelConfig(
    vocabulary=50,
    cutoffs=(10, 30),
    embedding_widths=(8, 4, 2),
    width=8,
    layers=2,
    heads=2,
    key_width=3,
    value_width=5,
    ffn_width=12,
    context=7,
)
"""For checkpoints that are written by hand and counted by hand."""

PACKED = ModelConfig(
    vocabulary=50,
    cutoffs=(9, 21),
    embedding_widths=(8, 5, 3),
    width=8,
    layers=2,
    heads=2,
    key_width=3,
    value_width=4,
    ffn_width=10,
    context=6,
)
"""Odd sizes, so that tensors of few bits end within a byte."""

LEAST = ModelConfig(
    vocabulary=6,
    cutoffs=(3,),
    embedding_widths=(2, 1),
    width=2,
    layers=1,
    heads=1,
    key_width=1,
    value_width=2,
    ffn_width=3,
    context=2,
)
"""So small that a test can spoil every byte of its packed file."""

LEAST_NATIVE = ModelConfig(
    vocabulary=8,
    cutoffs=(5,),
    embedding_widths=(4, 2),
    width=4,
    layers=1,
    heads=1,
    key_width=2,
    value_width=2,
    ffn_width=4,
    context=3,
)
"""The same for the native engine, with numbers that are worth computing."""

ONE_LAYER = ModelConfig(
    vocabulary=50,
    cutoffs=(20,),
    embedding_widths=(16, 4),
    width=16,
    layers=1,
    heads=2,
    key_width=4,
    value_width=4,
    ffn_width=20,
    context=5,
)
"""For what surrounds an engine: bindings, threads, the C example."""

UNEVEN = ModelConfig(
    vocabulary=300,
    cutoffs=(40, 120),
    embedding_widths=(32, 12, 5),
    width=32,
    layers=2,
    heads=3,
    key_width=7,
    value_width=5,
    ffn_width=50,
    context=9,
)
"""Keys, values and hidden layers of sizes that no kernel's vectors divide."""

ONE_BIN = ModelConfig(
    vocabulary=90,
    embedding_widths=(20,),
    width=32,
    layers=1,
    heads=2,
    key_width=8,
    value_width=8,
    ffn_width=33,
    context=200,
)
"""A full softmax, and a context longer than the texts of tests."""

MANY_WORDS = ModelConfig(
    vocabulary=4000,
    cutoffs=(200, 600),
    embedding_widths=(32, 16, 4),
    width=32,
    layers=2,
    heads=2,
    key_width=6,
    value_width=5,
    ffn_width=48,
    context=17,
)
"""The last bin has several of the engines' blocks of words."""

CODED = ModelConfig(
    vocabulary=400,
    cutoffs=(100,),
    embedding_widths=(32, 8),
    width=32,
    layers=2,
    heads=2,
    key_width=16,
    value_width=16,
    ffn_width=96,
    context=9,
)
"""Large enough that its integers are shorter as prefix codes."""
