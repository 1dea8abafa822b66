"""Where reports are stored: each kind of database in turn."""

import pytest

from tests.study.receive.servers import Server


@pytest.fixture(scope="session")
def server():
    made = Server()
    yield made
    made.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """A path or a URL where there is no store yet."""
    if request.param == "sqlite":
        return tmp_path / "reports.sqlite"
    return request.getfixturevalue("server").new()
