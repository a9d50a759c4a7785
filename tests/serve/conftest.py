"""One server for all tests that only ask."""

from collections.abc import Iterator

import pytest
from tests.support.servers import Server, serving

import micronet_lm as mn


@pytest.fixture(scope="session", autouse=True)
def needs_the_extra() -> None:
    for package in ("fastapi", "uvicorn", "websockets"):
        pytest.importorskip(package, reason="the extra 'serve' is not installed")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The shipped model, served with sessions on disk."""
    folder = tmp_path_factory.mktemp("serve") / "sessions"
    with serving("demo", "--sessions", str(folder)) as running:
        yield running


@pytest.fixture(scope="session")
def lm() -> mn.LM:
    """The same model in this process."""
    return mn.load("demo")
