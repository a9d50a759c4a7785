"""The section of a recipe for what the jobs of its stages ask of a cluster."""

from pydantic import Field, field_validator

from micronet_lm.config.section import Section

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def memory_bytes(text: str) -> int:
    """Return an amount of memory as sbatch has it: megabytes, or with K, M, G or T behind it."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "M")
    try:
        size = int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size < 1 << 20:
        raise ValueError(f"must be megabytes, or an amount such as 16G, got {text}")
    return size


class JobConfig(Section):
    """What the job of one stage asks for; what is absent comes from the plan's estimate."""

    hours: float | None = Field(default=None, gt=0.0)
    """Time limit."""

    memory: str | None = None
    """Memory per node, such as 16G."""

    gpus: int | None = Field(default=None, ge=0)
    """GPUs per node; a stage that several processes can share runs one process per GPU."""

    nodes: int | None = Field(default=None, ge=1)
    """Nodes; more than one only where several processes can share the work."""

    partition: str | None = None
    """Partition of the cluster."""

    @field_validator("memory")
    @classmethod
    def _memory_can_be_read(cls, memory: str | None) -> str | None:
        if memory is not None:
            memory_bytes(memory)
        return memory


class ClusterConfig(Section):
    """What the jobs of single stages ask of a cluster (--executor slurm); it changes no result."""

    corpus: JobConfig | None = None
    """The job that builds the corpus."""

    teacher: JobConfig | None = None
    """The job that trains the teacher."""

    soft_labels: JobConfig | None = None
    """The job that writes the teacher's soft labels."""

    student: JobConfig | None = None
    """The job that trains the student."""

    sensitivity: JobConfig | None = None
    """The job of the sensitivity analysis."""

    prune: JobConfig | None = None
    """The job that prunes."""

    search_cache: JobConfig | None = None
    """The job that searches the cache's parameters."""

    quantize: JobConfig | None = None
    """The job that quantizes."""

    search_again: JobConfig | None = None
    """The job of the second search."""

    pack: JobConfig | None = None
    """The job that packs."""

    account: JobConfig | None = None
    """The job that counts."""

    report: JobConfig | None = None
    """The job that writes the report."""

    def of(self, stage: str) -> JobConfig | None:
        """Return what the job of a stage asks for."""
        found: JobConfig | None = getattr(self, stage.replace("-", "_"), None)
        return found
