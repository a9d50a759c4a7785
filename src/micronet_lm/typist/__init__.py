"""A simulated typist: how many keystrokes a keyboard's suggestions save."""

from micronet_lm.typist.measure import Keyboard, Typing, measure
from micronet_lm.typist.model_keyboard import ModelKeyboard
from micronet_lm.typist.strokes import Strokes

__all__ = ["Keyboard", "ModelKeyboard", "Strokes", "Typing", "measure"]
