"""What all tests share: a folder of compiled kernels, noise that repeats, and one fit."""

import gc
import os
import re
import signal
from pathlib import Path

import pytest

# Two workers on two cores: where a product has threads of its own, each waits for the other, awake, for milliseconds.
# Read when NumPy is imported, and by processes that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.compiled import KERNELS
from tests.lookups import looked_up_once

TESTS = Path(__file__).parent
MANY = 20_000
"""Objects between two looks for garbage: compiling makes millions that stay, and by default spends a tenth on looks."""

ALL_LONG = re.compile(r"^pytestmark = (pytest\.mark\.long$|\[.*pytest\.mark\.long)", re.MULTILINE)


def pytest_ignore_collect(collection_path, config) -> bool | None:
    """Files whose tests are all long are not even imported where these are left out: PyMC and JAX take seconds."""
    if config.option.markexpr != "not long" or collection_path.suffix != ".py":
        return None
    return True if ALL_LONG.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_configure(config) -> None:
    """Name the folders of kernels before anything imports Numba or JAX; processes that tests start inherit them.

    JAX names what it keeps after the program that was compiled, so that nothing stale is found there either. Other
    libraries keep files in the user's cache folder, some of them by one name: each worker has a folder of its own.
    """
    KERNELS.mkdir(parents=True, exist_ok=True)
    os.environ["NUMBA_CACHE_DIR"] = str(KERNELS)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(KERNELS / "jax")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    os.environ["XDG_CACHE_HOME"] = str(KERNELS.with_name("cache") / worker)
    gc.set_threshold(MANY, 10, 10)
    looked_up_once()
    from tests.repeatable import noise_repeats

    noise_repeats()


def pytest_collectstart(collector) -> None:
    """Noise that a file of tests draws when it is imported."""
    from tests.repeatable import BITS

    BITS.named(collector.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Noise of a test: the same whatever ran before it."""
    from tests.repeatable import BITS

    BITS.named(item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Noise of a fixture: the same whichever test asks for it first."""
    from tests.repeatable import BITS

    with BITS.kept(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')}"):
        return (yield)


COMPILE = ["inference", "laws", "kernels", "recipes", "models", "selection"]
"""Folders that mostly compile: the first of two workers begins with them, so that hardly anything is compiled twice."""
OTHERS = ["study", "bridges", "engines", "fuzz", "docs", "cli", "fit", "report", "papers", "benchmarks"]
"""Folders of large tests of other kinds: the second begins with them, last with those that fit."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items) -> None:
    """For workers: the two halves that they begin with end in small tests, which the other one takes over."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    parts: dict[str, list] = {}
    for item in items:
        parts.setdefault(item.path.relative_to(TESTS).parts[0], []).append(item)
    first, second = ([each for name in names for each in parts.pop(name, [])] for names in (COMPILE, OTHERS))
    small = [each for part in parts.values() for each in part]
    cut = max(0, len(items) // 2 - len(first))
    items[:] = first + small[:cut] + second + small[cut:]


@pytest.fixture(scope="session")
def chronicle():
    """A fit of a model that nothing in the library knows of."""
    from tests.chronicle import Chronicle, chronicled

    return Chronicle(2, draws=12, tune=10, chains=2, seed=1, threads=1, progress=False).fit(chronicled())


@pytest.fixture
def ctrl_c():
    """Python's own answer to Ctrl-C, which a test runner may have replaced."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def checked_apart():
    """Asked for by tests of the process of its own in which a fit from a file is checked first."""


@pytest.fixture(autouse=True)
def checked_here(request):
    """Fits from files are checked in this process: starting another takes twenty times as long as the check."""
    if "checked_apart" in request.fixturenames:
        yield
        return
    from countveil.common import fit_files

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fit_files, "_inspected", lambda _, path: fit_files.inspect(path))
        yield
