"""A browser with the page open, for the tests in Chromium."""

import pytest

from countveil.study.page import page
from tests.study.page import browser as b
from tests.study.page.offices import STUDY


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def file(folder):
    path = folder / "study.html"
    path.write_text(page(STUDY), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shared(folder):
    with b.browser(folder) as driver:
        yield driver


@pytest.fixture
def driver(shared, file):
    """The page just opened; the ledger is that of the tests before, so that each needs a record of its own."""
    shared.get_log("performance")
    b.opened(shared, file)
    return shared
