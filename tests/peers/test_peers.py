"""Each real package, unchanged, against a real server and the mock model: `make test-peers`."""

from pathlib import Path

import pytest

from tests.peers.recording import PEERS, install, run_client, version
from tests.peers.showing import look
from tests.service_harness import ADMIN_TOKEN, Client, ServerProcess

pytestmark = [pytest.mark.peers, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("peer", PEERS)
def test_nothing_that_a_real_package_sends_is_lost(peer: str, tmp_path: Path) -> None:
    program = install(peer)
    server = ServerProcess(f"sqlite:///{tmp_path}/evenhand.db", folder=tmp_path)
    server.start()
    try:
        client = Client(server.address, ADMIN_TOKEN, f"project-{peer}")
        run_client(peer, program, server.address, ADMIN_TOKEN, client.project)
        shown = look(client)
        client.close()
    finally:
        server.stop()
    print(PEERS[peer].package, version(peer, program), shown)
    assert shown.roots.startswith("input and output")
    assert shown.calls == "input and output"
    assert shown.model == "small-1"
    assert shown.tokens == "8 and 1"
    assert "the key is wrong" in shown.error
    assert peer == "mlflow" or shown.session.startswith("conversation-1")
