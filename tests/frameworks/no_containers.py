"""A plugin of pytest for suites that start their servers in containers: here they run already."""

import pytest


@pytest.fixture(scope="session")
def docker_services():
    class Running:
        def start(self, name):
            """It does."""

        def wait_for_service(self, *_):
            """It is there."""

    return Running()
