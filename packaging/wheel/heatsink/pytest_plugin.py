"""pytest's fixtures `heatsink_local` and `heatsink_session`, and the marker `heatsink`."""

from typing import Iterator

import pytest

from heatsink.server import Local, local


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "heatsink(**settings): what heatsink.local takes, for the server of `heatsink_local`, "
        "such as rules='heatsink.toml', partitions=False")


@pytest.fixture
def heatsink_local(request: pytest.FixtureRequest) -> Iterator[Local]:
    """A fresh server with an empty store, for one test."""
    marker = request.node.get_closest_marker("heatsink")
    with local(**(marker.kwargs if marker else {})) as server:
        yield server


@pytest.fixture(scope="session")
def heatsink_session() -> Iterator[Local]:
    """One server for all tests of a run. They see each other's tables."""
    with local() as server:
        yield server
