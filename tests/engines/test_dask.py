"""The same bits from two workers as from threads, also when the process of one of them is killed."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack

import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster
from typer.testing import CliRunner

import countveil as cv
from countveil.cli.app import app
from countveil.data.observations import PrivatizedCounts
from countveil.engines import dask as dask_engine
from countveil.engines import opening
from countveil.engines.blocks import Block, row_blocks
from countveil.engines.dask import (
    MAX_BLOCKS_PER_GROUP,
    DaskEngine,
    EqualRows,
    added,
    compute_group,
    grouped,
    lengthened,
    packed,
    placed,
    settled,
    shortened,
)
from countveil.engines.opening import started
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs, tokens
from countveil.inference.facts import facts_of
from countveil.inference.starts.alternating import least_squares_start
from tests.engines.passes import dies_once, multiplied_elsewhere, observed, reports_by_row, reports_of_here, sums_like
from tests.joint import assert_same_bits, method_with

BRIEF = {"draws": 2, "tune": 2, "chains": 2, "seed": 4, "threads": 2, "progress": False}
quietly = pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")


@pytest.fixture(scope="module")
def client():
    """Of two worker processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def client_here():
    """Of two workers in this process."""
    with ExitStack() as stack:
        yield started(2, stack)


def reports(shape, seed=1):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.5, 2.0, (shape[0], *[1] * (len(shape) - 1))), shape)
    return counts + rng.geometric(0.6, shape) - rng.geometric(0.6, shape)


def draws(fit):
    return tuple(values.to_numpy() for values in fit.posterior["posterior"].data_vars.values())


def assert_same_fit(model, data, client):
    here = draws(model.fit(data))
    assert_same_bits(draws(model.fit(data, client=client)), here)


@pytest.mark.long
@quietly
@pytest.mark.parametrize("method", ["gibbs", "augmented-gibbs", "cavi", "em"])
def test_topics_are_those_of_threads(method, client):
    data = PrivatizedCounts(reports((300, 12)), 0.4, mask=np.arange(12) == np.arange(300)[:, None] % 40)
    options = BRIEF | {"chains": 2 if method == "gibbs" else 1}
    assert_same_fit(cv.TopicModel(3, method=method_with(method, max_iter=3), **options), data, client)


@pytest.mark.long
@pytest.mark.parametrize("method", ["gibbs", "cavi"])
@quietly
def test_communities_are_those_of_threads(method, client):
    assert_same_fit(
        cv.BlockModel(2, method=method_with(method, max_iter=3), **BRIEF),
        PrivatizedCounts(reports((90, 90)), 0.4),
        client,
    )


@pytest.mark.long
@pytest.mark.parametrize("counts", [{}, {"likelihood": "negative-binomial", "dispersion": "column"}], ids=str)
def test_sweeps_by_tokens_are_those_of_threads(counts, client, monkeypatch):
    monkeypatch.setattr(tokens, "pays", lambda *_: True)
    data, model = PrivatizedCounts(reports((300, 12)), 0.4), cv.TopicModel(3, **counts, **BRIEF)
    by_tokens = draws(model.fit(data))
    assert_same_fit(model, data, client)
    monkeypatch.undo()
    assert not np.array_equal(draws(model.fit(data))[0], by_tokens[0])


@pytest.mark.long
@pytest.mark.parametrize(("columns", "masked"), [(12, True), (400, False)])
def test_starts_are_those_of_threads(columns, masked, client):
    """Few columns make two blocks, many of an odd number of rows make more than there are workers."""
    counts = reports((309, columns))
    mask = np.random.default_rng(5).random(counts.shape) < 0.1 if masked else None
    found = []
    with ThreadEngine(2) as here, DaskEngine(client) as there:
        for engine in (here, there):
            data = PrivatizedCounts(counts, np.linspace(0.2, 0.6, 309), mask)  # anew: its facts are kept
            found.append((*facts_of(data, engine), *least_squares_start(data, 3, np.random.default_rng(6), engine)))
    assert_same_bits(*found)


def some_pass():
    """(observations, phi, theta)"""
    rng = np.random.default_rng(3)
    return PrivatizedCounts(reports((300, 12)), 0.4), rng.random((12, 2)), rng.random((300, 2))


@pytest.mark.long
@pytest.mark.parametrize("block_rows", [300, 75, 100, 7])
def test_sums_of_any_number_of_groups_are_those_of_threads(client, block_rows):
    client.wait_for_workers(2, timeout=30)
    data, phi, theta = some_pass()
    with ThreadEngine() as here, DaskEngine(client) as there:
        blocks = row_blocks(300, block_rows)
        wanted = here.over_rows(reports_by_row, data, (phi,), (theta,), blocks)
        assert_same_bits(there.over_rows(reports_by_row, data, (phi,), (theta,), blocks), wanted)
        (shipment,) = there._shipments[data].values()
        n_groups = len(shipment.groups)
    assert n_groups == {300: 1, 75: 2, 100: 2, 7: 4}[block_rows]


@pytest.mark.long
@pytest.mark.parametrize("block_rows", [300, 75, 7])
def test_what_is_shared_is_prepared_by_workers(client, block_rows):
    data, phi, theta = some_pass()
    blocks = row_blocks(300, block_rows)
    with ThreadEngine() as here, DaskEngine(client) as there:
        wanted = here.over_rows(reports_by_row, data, (3.0 * phi,), (theta,), blocks)
        shared = phi, 3.0, os.getpid()
        found = there.over_rows(reports_by_row, data, shared, (theta,), blocks, multiplied_elsewhere)
    assert_same_bits(found, wanted)


@pytest.mark.long
def test_the_same_data_go_by_one_cut_and_by_another(client):
    data, phi, theta = some_pass()
    with ThreadEngine() as here, DaskEngine(client) as there:
        for cut in (100, 200, 100):
            given = reports_by_row, data, (phi,), (theta,), [slice(0, cut), slice(cut, 300)]
            assert_same_bits(there.over_rows(*given), here.over_rows(*given))
        assert len(there._shipments[data]) == 2


@pytest.mark.long
def test_blocks_are_sent_once_for_as_long_as_the_data_are_there(client, monkeypatch):
    client.wait_for_workers(2, timeout=30)
    data, phi, theta = some_pass()
    sent = []
    real = DaskEngine._sent
    monkeypatch.setattr(DaskEngine, "_sent", lambda *a: (sent.append(a[2]), real(*a))[1])
    with DaskEngine(client) as engine:
        for _ in range(3):
            engine.over_rows(reports_by_row, data, (phi,), (theta,))
        assert len(engine._shipments) == 1
        del data
        assert len(engine._shipments) == 0
    assert sorted(sent) == sorted(client.nthreads())


@pytest.mark.long
def test_blocks_that_are_lost_alone_are_sent_again(client):
    data, phi, theta = some_pass()
    with ThreadEngine() as here, DaskEngine(client) as there:
        wanted = here.over_rows(reports_by_row, data, (phi,), (theta,))
        there.over_rows(reports_by_row, data, (phi,), (theta,))
        next(iter(there._shipments[data].values())).data[1].cancel()
        assert_same_bits(there.over_rows(reports_by_row, data, (phi,), (theta,)), wanted)


@pytest.mark.long
def test_what_is_shared_keeps_its_layout_in_few_groups(client):
    """Sums are laid out as what they are made like, and are later added up in the order of their layout."""
    rng = np.random.default_rng(3)
    data, theta = PrivatizedCounts(reports((300, 12)), 0.4), rng.random((300, 2))
    with ThreadEngine() as here, DaskEngine(client) as there:
        for phi in (rng.random((2, 24)).T[::2], rng.random((12, 4))[:, ::2]):
            found = [engine.over_rows(sums_like, data, (phi,), (theta,)) for engine in (here, there)]
            assert_same_bits(found[1], found[0])
            assert found[1][1][0].strides == found[0][1][0].strides
        assert len(next(iter(there._shipments[data].values())).groups) == 2


@pytest.mark.long
@quietly
@pytest.mark.parametrize(("method", "by_tokens"), [("gibbs", True), ("cavi", False)])
def test_without_a_cluster_one_is_started_in_this_process(method, by_tokens, monkeypatch):
    monkeypatch.setattr(tokens, "pays", lambda *_: by_tokens)
    monkeypatch.setattr(opening, "started", lambda n, stack, real=started: made.append(n) or real(n, stack))
    data, made = PrivatizedCounts(reports((300, 12)), 0.4), []
    here = draws(cv.TopicModel(3, method=method_with(method, max_iter=3), **BRIEF).fit(data))
    there = draws(cv.TopicModel(3, method=method_with(method, max_iter=3), engine="dask", **BRIEF).fit(data))
    assert_same_bits(there, here)
    assert made == [2]


@pytest.mark.long
@pytest.mark.parametrize("block_rows", [300, 75, 7])
def test_workers_in_this_process_share_its_data(client_here, block_rows):
    data, phi, theta = some_pass()
    blocks = row_blocks(300, block_rows)
    observed.append(data)
    try:
        with ThreadEngine() as here, DaskEngine(client_here) as there:
            wanted = here.over_rows(reports_by_row, data, (phi,), (theta,), blocks)
            for _ in range(2):
                assert_same_bits(there.over_rows(reports_of_here, data, (phi,), (theta,), blocks), wanted)
    finally:
        observed.clear()


@pytest.mark.long
def test_nobody_elsewhere_can_reach_workers_in_this_process(client_here):
    assert client_here.scheduler.address.startswith("inproc://")
    assert set(client_here.run(os.getpid).values()) == {os.getpid()}
    assert sorted(client_here.nthreads().values()) == [1, 1]
    ports = {link.laddr for link in psutil.Process().net_connections() if link.status == "LISTEN"}
    assert {address.ip for address in ports} <= {"127.0.0.1"}


def left_in_process():
    """What a cluster could leave behind: places of modules, sockets, threads."""
    return (
        list(sys.path),
        len(psutil.Process().net_connections()),
        {thread.name for thread in threading.enumerate()} - {"Dask-Offload_0"},
    )


@pytest.mark.long
def test_a_cluster_of_this_process_leaves_nothing_behind():
    before = left_in_process()
    with ExitStack() as stack:
        client = started(3, stack)
        folders = {place for place in sys.path if "countveil-dask-" in place} - set(before[0])
        assert folders
        assert client.submit(sum, [1, 2]).result() == 3
    assert left_in_process() == before
    assert not any(map(os.path.exists, folders))


@pytest.mark.long
@pytest.mark.parametrize("setting", ["REQUIRE_ENCRYPTION", "NOTHING"])
def test_a_cluster_of_this_process_needs_no_network_and_no_certificates(setting):
    """In a process of its own: Dask asks for this machine's address once."""
    program = (
        "import logging, socket\n"
        "from contextlib import ExitStack\n"
        "from countveil.engines.opening import started\n"
        "class Offline(socket.socket):\n"
        "    def connect(self, place):\n"
        "        raise OSError('no network')\n"
        "socket.socket = Offline\n"
        "logging.getLogger('asyncio').disabled = True  # where the machine is slow, what is given up when it ends\n"
        "with ExitStack() as stack:\n"
        "    print(started(1, stack).submit(sum, [1, 2]).result())\n"
    )
    environment = os.environ | {f"DASK_DISTRIBUTED__COMM__{setting}": "True"}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.strip(), done.stderr) == ("3", "")


@pytest.mark.long
def test_an_error_in_a_block_reaches_the_caller(client):
    data, phi, theta = some_pass()
    with DaskEngine(client) as engine, pytest.raises(ValueError, match="broadcast"):
        engine.over_rows(reports_by_row, data, (phi,), (theta[:, :, None],))


@pytest.mark.long
def test_workers_that_always_die_are_an_error_at_last(monkeypatch):
    monkeypatch.setattr(dask_engine, "MAX_LOSSES", 2)
    data, phi, theta = some_pass()

    class Dying:
        status = "running"

        def nthreads(self):
            return {"somewhere": 1}

        def run(self, function, **_):
            return {"somewhere": function()}

        def scatter(self, *_, **__):
            raise OSError("gone")

    with DaskEngine(Dying()) as engine, pytest.raises(ConnectionError, match="got 2 losses in a row"):
        engine.over_rows(reports_by_row, data, (phi,), (theta,))
    monkeypatch.setattr(Dying, "status", "closed")
    with DaskEngine(Dying()) as engine, pytest.raises(OSError, match="gone"):
        engine.over_rows(reports_by_row, data, (phi,), (theta,))


@pytest.mark.long
def test_a_cluster_without_workers_is_an_error(monkeypatch):
    monkeypatch.setattr(dask_engine, "WAIT_SECONDS", 0.1)
    data, phi, theta = some_pass()
    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as empty,
        DaskEngine(empty) as engine,
        pytest.raises(ConnectionError, match=r"must have a worker, got none in 0\.1 s"),
    ):
        engine.over_rows(reports_by_row, data, (phi,), (theta,))


@pytest.mark.long
def test_workers_with_another_version_are_refused(client, monkeypatch):
    client.wait_for_workers(1, timeout=30)
    monkeypatch.setattr(dask_engine, "__version__", "9.9")
    with pytest.raises(ValueError, match=r"must have countveil 9\.9, numba .*, got countveil .* from tcp://"):
        DaskEngine(client)


@pytest.mark.long
def test_what_runs_on_a_worker_changes_none_of_its_inputs():
    data, phi, theta = some_pass()
    group = [Block(n, data.block(slice(75 * n, 75 * n + 75))) for n in range(3)]
    before = [a.copy() for a in (phi, theta)]
    rows, sums = compute_group(reports_by_row, None, group, (phi,), (theta[:225],))
    kept = [a.copy() for a in sums]
    twice = added(sums, sums)
    assert_same_bits((phi, theta), tuple(before))
    assert_same_bits(sums, tuple(kept))
    parts = [reports_by_row(block, phi, theta[75 * n : 75 * n + 75]) for n, block in enumerate(group)]
    assert_same_bits(sums, tuple(a + (b + c) for a, b, c in zip(*(found for _, found in parts), strict=True)))
    assert_same_bits(twice, tuple(a + a for a in sums))
    assert_same_bits(rows, tuple(map(np.concatenate, zip(*(found for found, _ in parts), strict=True))))


LONE_WORKER = """
import numpy as np
from threadpoolctl import threadpool_info
from countveil.engines.blocks import Block
from countveil.engines.dask import compute_group
from countveil.inference.factors import column_exposures_block
from countveil.data.observations import PrivatizedCounts
from countveil.laws.counts import POISSON
from countveil.laws.counts.laws import law_of

data = PrivatizedCounts(np.ones((9, 8), dtype=int), 0.5)
shared, group = (law_of(data.noise, POISSON), 8), [Block(0, data.block(slice(0, 9)))]
compute_group(column_exposures_block, None, group, shared, (np.ones((9, 3)),))
print(sorted(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"))
"""


@pytest.mark.long
def test_a_worker_has_one_thread_of_blas_also_where_nobody_set_it():
    """In a process of its own: Numba loads SciPy's BLAS with the first matrix product, after NumPy's."""
    environment = os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", LONE_WORKER], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() in ("[1]", "[1, 1]")


@pytest.mark.long
@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2)])
def test_equal_rows_travel_as_one(shape):
    equal = np.empty(shape)
    equal[:] = np.random.default_rng(1).random(shape[1:])
    sent = shortened(equal)
    assert isinstance(sent, EqualRows)
    assert sent.row.size == equal[0].size
    assert_same_bits((lengthened(sent),), (equal,))
    assert lengthened(sent).strides == equal.strides
    for number in (1, 3):
        other = equal.copy()
        other[number] += 1.0
        assert shortened(other) is other
    turned = np.ones((3, 4)).T
    assert shortened(turned) is turned
    one = np.ones((1, 5))
    assert shortened(one) is one


@pytest.mark.long
@pytest.mark.parametrize("cut", [np.s_[:], np.s_[::2], np.s_[:, ::2]])
@pytest.mark.parametrize("turned", [False, True])
def test_what_is_shared_travels_in_its_layout(cut, turned):
    array = np.arange(24.0).reshape(6, 4)[cut]
    array = array.T if turned else array
    (found,), number = packed(((array,), 3))
    assert number == 3
    assert np.array_equal(found, array)
    assert found.flags.c_contiguous or found.flags.f_contiguous
    assert np.zeros_like(found).strides == np.zeros_like(array).strides


@pytest.mark.long
def test_what_is_received_settles_where_memory_of_numpys_own_begins():
    bytes_ = np.zeros(8 * 12 + 4, dtype=np.uint8)
    odd = bytes_[4:].view(np.float64).reshape(3, 4).T
    odd[...] = np.arange(12).reshape(4, 3)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    kept = np.ones(4)
    (found, (thawed, same)), word = settled(((odd, (frozen, kept)), "word"))
    assert not odd.flags.aligned
    assert found.flags.aligned
    assert found.strides == odd.strides
    assert np.array_equal(found, odd)
    assert thawed.flags.writeable
    assert same is kept
    assert word == "word"


@pytest.mark.long
def test_the_command_takes_a_scheduler(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cv.privatize(np.abs(reports((80, 6))), cv.PrivacyLevel(1, 1)).save("survey.npz")
    quick = ["--draws", "3", "--tune", "2", "--chains", "1", "--seed", "1", "--threads", "1", "--topics", "2"]
    for name, extra in (("here", []), ("there", ["--scheduler", client.scheduler.address])):
        found = CliRunner().invoke(app, ["fit", "topics", "survey.npz", "-o", f"{name}.nc", *quick, *extra])
        assert found.exit_code == 0, found.output
    here, there = cv.TopicModel.load("here.nc"), cv.TopicModel.load("there.nc")
    assert_same_bits(draws(here), draws(there))
    assert there.engine is None
    assert client.scheduler.address not in there.posterior.attrs["parameters"]
    found = CliRunner().invoke(app, ["fit", "topics", "survey.npz", "-o", "x.nc", *quick, "--scheduler", "here"])
    assert "scheduler must be an address such as tcp://" in found.stderr


# --- what kills a worker comes last: one that takes its place loads everything anew ---


@pytest.mark.long
def test_a_pass_that_loses_a_worker_on_the_way_ends_the_same(client, tmp_path):
    data, phi, theta = some_pass()
    with ThreadEngine() as here, DaskEngine(client) as there:
        wanted = here.over_rows(reports_by_row, data, (phi,), (theta,))
        assert_same_bits(there.over_rows(reports_by_row, data, (phi,), (theta,)), wanted)
        marker = tmp_path / "died"
        assert_same_bits(there.over_rows(dies_once, data, (str(marker), phi), (theta,)), wanted)
        assert marker.exists()
        assert_same_bits(there.over_rows(reports_by_row, data, (phi,), (theta,)), wanted)


def step_and_kill(pid, at_sweep):
    """A sampler's step that first kills a process, once."""

    def step(state, *rest, real=gibbs.step):
        if state.sweep == at_sweep:
            os.kill(pid, signal.SIGKILL)
        return real(state, *rest)

    return step


@pytest.mark.long
def test_a_chain_that_loses_a_worker_between_sweeps_ends_the_same(client, monkeypatch):
    data, model = PrivatizedCounts(reports((300, 12)), 0.4), cv.TopicModel(3, **BRIEF | {"chains": 1})
    here = draws(model.fit(data))
    monkeypatch.setattr(gibbs, "step", step_and_kill(next(iter(client.run(os.getpid).values())), 2))
    assert_same_bits(draws(model.fit(data, client=client)), here)


@pytest.mark.parametrize("n_threads", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize("n_blocks", [1, 2, 13, 40, 1000])
def test_groups_are_halves_of_halves_and_have_every_block_once(n_blocks, n_threads):
    groups = grouped(n_blocks, n_threads)
    assert [number for group in groups for number in group] == list(range(n_blocks))
    assert len(groups) & (len(groups) - 1) == 0
    sizes = [len(group) for group in groups]
    assert max(sizes) <= MAX_BLOCKS_PER_GROUP
    assert max(sizes) - min(sizes) <= 1
    assert 2 * len(groups) > n_blocks or len(groups) % n_threads == 0 or len(groups) >= 4 * n_threads


def test_groups_are_shared_out_by_threads_and_neighbours_stay_together():
    assert placed([None] * 8, {"a": 1, "b": 1}) == list("aaaabbbb")
    assert placed([None] * 16, {"a": 1, "b": 1, "c": 1}) == list("aaaaaabbbbbbcccc")
    assert sorted(placed([None] * 8, {"a": 1, "b": 3})) == list("aabbbbbb")


def test_groups_stay_where_they_are():
    held = list("babbaaba")
    assert placed(held, {"a": 1, "b": 1}) == held
    assert placed([*held[:3], None, *held[4:]], {"a": 1, "b": 1}) == held


def test_groups_of_a_lost_worker_go_to_the_others():
    assert placed(list("abbaabba"), {"b": 1}) == ["b"] * 8
    assert sorted(placed(list("abcabc"), {"a": 1, "c": 1})) == list("aaaccc")


def test_a_new_worker_gets_its_share_and_no_more():
    found = placed(["a"] * 8, {"a": 1, "b": 1})
    assert sorted(found) == list("aaaabbbb")
    assert found[:4] == ["a"] * 4
