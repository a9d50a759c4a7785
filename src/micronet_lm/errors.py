"""The exceptions that a user may meet, each with one sentence that says what to do.

::

    MicronetError            the work failed: exit code 1
    ├── UsageError           the words on the command line were wrong: exit code 2
    │   └── ConfigError      a recipe has an unknown key, a wrong value or a contradiction
    ├── CorpusError          text that cannot become a corpus, or a corpus that cannot be read
    │   └── DownloadError    a corpus that cannot be fetched
    ├── RunError             a run folder or checkpoint that is missing, foreign or damaged
    ├── PipelineError        a pipeline's folder that is in use, foreign or cannot be written
    ├── ArtifactError        a packed file that is missing, damaged or hostile, or cannot be made
    ├── InferenceError       a question that a loaded model has no answer to
    ├── LabelsError          soft labels that are missing, unfinished, damaged or of other text
    └── NonFiniteLossError   training diverged
"""


class MicronetError(Exception):
    """Base of every error that ends in one sentence instead of a traceback."""


class UsageError(MicronetError):
    """The command line asks for something that does not exist."""


class ConfigError(UsageError):
    """A recipe that cannot be used: unknown key, wrong value, contradiction."""


class CorpusError(MicronetError):
    """Text that cannot become a corpus, or a corpus folder that cannot be read."""


class DownloadError(CorpusError):
    """A published corpus that cannot be fetched."""


class RunError(MicronetError):
    """A run folder or checkpoint that is missing, foreign or damaged."""


class PipelineError(MicronetError):
    """A pipeline's folder that is in use, foreign, or cannot be written."""


class ArtifactError(MicronetError):
    """A packed file that is missing, truncated, damaged or hostile, or that cannot be written."""


class InferenceError(MicronetError):
    """A question without an answer: no token yet, an id out of range, another model's session."""


class LabelsError(MicronetError):
    """Soft labels that are missing, unfinished, damaged, or made for another text."""


class NonFiniteLossError(MicronetError):
    """Training met a loss that is not a number."""
