"""The section of a recipe for the form of the packed file."""

from micronet_lm.config.section import Section


class PackConfig(Section):
    """The form of the packed file; the model is the same in each."""

    coded: bool = True
    """Whether integers and words are prefix codes where that is shorter: a smaller file, which
    takes longer to open."""
