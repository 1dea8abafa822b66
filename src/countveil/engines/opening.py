"""An engine by its name, as users give it: threads, a Dask cluster of this machine, a scheduler's address, a client."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from countveil.common.extras import install
from countveil.engines.blocks import Engine

if TYPE_CHECKING:
    from distributed import Client

NAMES = ("threads", "dask")
CONNECT_SECONDS = 10.0
# For schedulers and workers. By default Dask serves its dashboards to the whole network.
SERVER_OPTIONS = {"protocol": "inproc://", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
LARGEST_GRAPH = "1GiB"  # rows of factors are sent with their tasks; by default Dask warns at 10 MB


def check_engine(engine: Any, client: Any = None) -> bool:
    """Whether this is for Dask.

    Raises:
        ValueError: neither a name nor a scheduler's address, or one that does not go with a client.
    """
    is_address = isinstance(engine, str) and "://" in engine
    if not (engine is None or is_address or (isinstance(engine, str) and engine in NAMES)):
        raise ValueError(
            f"engine must be None, 'threads', 'dask' or the address of a scheduler such as 'tcp://10.0.0.1:8786' (a "
            f"client goes to fit), got {engine!r:.80}"
        )
    if client is not None and (is_address or engine == "threads"):
        raise ValueError(f"client requires engine None or 'dask', got engine {engine!r}")
    return is_address or engine == "dask" or client is not None


@contextmanager
def opened(engine: str | None, client: "Client | None", threads: int) -> Iterator[Engine | None]:
    """The engine while a fit lasts; None for threads, which every part of a fit starts for itself.

    "dask" without a client is the client that the user made last, or else a cluster within this process with
    ``threads`` workers.

    Raises:
        ValueError: as ``check_engine``; a worker without this version of countveil.
        ModuleNotFoundError: Dask is not installed.
        ConnectionError: no scheduler answers at the address, or it has no worker.
    """
    if not check_engine(engine, client):
        yield None
        return
    try:
        import dask

        from countveil.engines.dask import DaskEngine
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"engine 'dask' needs {error.name}: {install('dask')}") from error
    with ExitStack() as stack:
        stack.enter_context(dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGEST_GRAPH}))
        if client is None:
            client = connected(engine, stack) or started(threads, stack)
        yield stack.enter_context(DaskEngine(client, threads))


def connected(address: str | None, stack: ExitStack) -> "Client | None":
    """A client of the scheduler at an address; for the name "dask" the user's own, if there is one."""
    from distributed import Client

    if address is None or address in NAMES:
        try:
            return Client.current()
        except ValueError:
            return None
    try:
        return stack.enter_context(Client(address, timeout=CONNECT_SECONDS, set_as_default=False))
    except (OSError, RuntimeError, TypeError, ValueError) as error:  # Dask raises all of these
        raise ConnectionError(
            f"a scheduler must answer at {address} within {CONNECT_SECONDS:g} s, got: {error}"
        ) from error


def started(n_workers: int, stack: ExitStack) -> "Client":
    """A client of a cluster within this process, one worker per thread, which is closed with the stack.

    Workers in processes of their own would gain nothing, since the kernels release the interpreter's lock. They would
    have to be sent the data, and would take tasks at ports that every user of the machine can reach.
    """
    import dask
    from distributed import Client, Scheduler, SpecCluster, Worker
    from distributed.utils import get_ip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        get_ip()  # is cached, and warns where there is no network
    # Nobody looks at the profiles.
    stack.enter_context(dask.config.set({"distributed.worker.profile.enabled": False}))
    folder = stack.enter_context(TemporaryDirectory(prefix="countveil-dask-"))
    stack.callback(forget_modules_of, folder)
    options = SERVER_OPTIONS | {"local_directory": folder}
    worker = {"cls": Worker, "options": options | {"nthreads": 1, "memory_limit": 0}}
    cluster = SpecCluster(
        workers=dict.fromkeys(range(n_workers), worker),
        scheduler={"cls": Scheduler, "options": options},
        silence_logs=logging.WARNING,
    )
    stack.enter_context(cluster)
    return stack.enter_context(Client(cluster, set_as_default=False))


def forget_modules_of(folder: str) -> None:
    """Remove a folder's entries from ``sys.path``: several Dask servers in one process leave some of theirs there."""
    sys.path[:] = [place for place in sys.path if not place.startswith(folder)]
