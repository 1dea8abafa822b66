"""What all tests share: compiled kernels that are those of the sources as they are now, and one fit.

Numba keeps what it compiled beside each source, and looks at that file's date alone: a kernel that calls a changed one
in another file would be run as it was. Here it keeps it in a folder that is named after the contents of all sources
with kernels, so that nothing stale is ever found, and nothing is compiled twice.
"""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def digest_of_kernels() -> str:
    """A digest of every source that Numba compiles, on its own or as part of a loop that is told to (``provides``)."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        content = path.read_bytes()
        if any(word in content for word in (b"numba", b"provides", b"kernels.compiled")):
            found.update(str(path.relative_to(ROOT)).encode() + b"\0" + content)
    return found.hexdigest()[:16]


def pytest_configure(config) -> None:
    """Name the folder before anything imports Numba; processes that tests start inherit it."""
    caches = ROOT / "build" / "numba"
    here = caches / digest_of_kernels()
    os.environ["NUMBA_CACHE_DIR"] = str(here)
    if not hasattr(config, "workerinput"):
        for other in caches.glob("*"):
            if other != here:
                shutil.rmtree(other, ignore_errors=True)
        here.mkdir(parents=True, exist_ok=True)


@pytest.fixture(scope="session")
def chronicle():
    """A fit of a model that nothing in the library knows of."""
    from tests.chronicle import Chronicle, chronicled

    return Chronicle(2, draws=12, tune=10, chains=2, seed=1, threads=1, progress=False).fit(chronicled())
