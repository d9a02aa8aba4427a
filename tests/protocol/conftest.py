from collections.abc import Mapping

import pytest

from .clients import GENERATIONS, Client, compile_client


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Client]:
    """One client per generation of the protocol, by its letter."""
    return {letter: compile_client(letter, tmp_path_factory.mktemp(f"generation-{letter}")) for letter in GENERATIONS}


@pytest.fixture(params=GENERATIONS)
def client(request: pytest.FixtureRequest, clients: Mapping[str, Client]) -> Client:
    """Each generation in turn."""
    return clients[request.param]
