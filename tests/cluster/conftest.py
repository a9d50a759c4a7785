"""A real SLURM cluster of three nodes for all tests of this folder, where one can be started."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.slurm import Cluster, running_cluster, why_not


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Start the cluster; skip with a reason where that cannot be done."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="micronet-cluster-"))  # short: it has sockets
    folder.chmod(0o755)
    with running_cluster(folder, nodes=3) as cluster:
        yield cluster
    shutil.rmtree(folder, ignore_errors=True)
