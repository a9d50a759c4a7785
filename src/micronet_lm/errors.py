"""The exceptions of this package; each message is one sentence that says what to do.

::

    MicronetError            the work failed: exit code 1
    ├── UsageError           the command line is wrong: exit code 2
    │   └── ConfigError      a recipe has an unknown key, a wrong value or a contradiction
    ├── CorpusError          text that cannot become a corpus, or a corpus that cannot be read
    │   └── DownloadError    a corpus that cannot be downloaded
    ├── RunError             a run folder or checkpoint that is missing, foreign or damaged
    ├── PipelineError        a pipeline's folder that is in use, foreign or cannot be written
    ├── ArtifactError        a packed file that is missing, damaged or hostile, or cannot be made
    ├── InferenceError       a question that a loaded model cannot answer
    ├── PersonalError        a personal memory that is foreign, damaged, in use or not private
    ├── LabelsError          soft labels that are missing, incomplete, damaged or of another text
    └── NonFiniteLossError   training diverged
"""

import difflib
from collections.abc import Iterable


class MicronetError(Exception):
    """Base of all errors that are shown as one sentence without a traceback."""


class UsageError(MicronetError):
    """A command line with wrong words or values."""


class ConfigError(UsageError):
    """A recipe that cannot be used: unknown key, wrong value, contradiction."""


class CorpusError(MicronetError):
    """Text that cannot become a corpus, or a corpus folder that cannot be read."""


class DownloadError(CorpusError):
    """A published corpus that cannot be downloaded."""


class RunError(MicronetError):
    """A run folder or checkpoint that is missing, foreign or damaged."""


class PipelineError(MicronetError):
    """A pipeline's folder that is in use, foreign, or cannot be written."""


class ArtifactError(MicronetError):
    """A packed file that is missing, truncated, damaged or hostile, or that cannot be written."""


class InferenceError(MicronetError):
    """A question that cannot be answered, such as one before the first token."""


class PersonalError(MicronetError):
    """A personal memory that belongs to another model, is damaged, in use, or not private."""


class LabelsError(MicronetError):
    """Soft labels that are missing, incomplete, damaged, or made for another text."""


class NonFiniteLossError(MicronetError):
    """A non-finite loss, gradient or weight in training."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a question with the known word that is most like another; empty if none is like it."""
    match = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean '{match[0]}'?)" if match else ""


def install_extra(extra: str) -> str:
    """Return the command that installs an extra; without its pins, torch is gigabytes larger."""
    return f"pip install -c constraints.txt '.[{extra}]' in a clone of micronet-lm"
