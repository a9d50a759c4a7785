"""Without the native engine, as after MICRONET_WITHOUT_NATIVE=1, there is nothing to test here."""

import pytest

from micronet_lm.runtime.engines import has_native


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not has_native():
        for item in items:
            if "tests/native" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason="the native engine is not built"))
