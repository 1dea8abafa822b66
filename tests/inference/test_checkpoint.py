"""A run that dies goes on: the finished chain is the uninterrupted one, bit for bit."""

import resource
import signal
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

import countveil as cv
from countveil.fit import choosing
from countveil.inference import checkpoint as checkpoints
from countveil.inference import draws as draws_module
from countveil.inference import gibbs, run
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior
from tests.joint import planted
from tests.recipes.lognormal import LogNormalPrior

pytestmark = pytest.mark.long

SCRIPT = """
import os
import signal
import sys
import numpy as np
import countveil as cv
from countveil.inference import gibbs
data, checkpoint = sys.argv[1:]
right = gibbs.step

def kept():
    if not os.path.exists(checkpoint):
        return 0
    with np.load(checkpoint) as stored:
        return len(stored["chain0_draws0"]) if "chain0_draws0" in stored.files else 0

def step(state, *rest):
    if state.sweep > 30 and kept() >= 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return right(state, *rest)

gibbs.step = step
model = cv.TopicModel(3, method="gibbs", draws=60, tune=20, chains=2, seed=4, threads=2)
model.fit(cv.PrivatizedCounts(np.load(data), 0.5), checkpoint=checkpoint, checkpoint_minutes=0.0001)
"""


def model(**changes):
    options = {"method": "gibbs", "draws": 60, "tune": 20, "chains": 2, "seed": 4, "threads": 2} | changes
    return cv.TopicModel(3, **options)


def draws_of(fit):
    groups = fit.posterior
    stats = groups["sample_stats"]
    return [groups["posterior"][name].to_numpy() for name in ("theta", "phi", "theta_rate")] + [
        stats["log_likelihood"].to_numpy()
    ]


@pytest.mark.filterwarnings("ignore:Not safe yet:sklearn.exceptions.ConvergenceWarning")
def test_killed_and_resumed_is_the_same_as_never_killed(tmp_path):
    """Of other factorizations and of the other sampler, in this process: test_factorized_runs.py."""
    reports = planted(100, 60, 3, 0.5, seed=1)[3]
    data, checkpoint = tmp_path / "reports.npy", tmp_path / "run.npz"
    np.save(data, reports)
    died = subprocess.run([sys.executable, "-c", SCRIPT, str(data), str(checkpoint)], timeout=120)
    assert died.returncode == -signal.SIGKILL, "it ended before it could be killed"
    observations = cv.PrivatizedCounts(reports, 0.5)
    with np.load(checkpoint, allow_pickle=False) as stored:
        assert 5 <= len(stored["chain0_draws0"]) < 60
    resumed = model().fit(observations, checkpoint=checkpoint, resume=True)
    whole = model().fit(observations)
    for one, other in zip(draws_of(resumed), draws_of(whole), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_does_not_fit_is_refused(tmp_path):
    reports, checkpoint = planted(30, 20, 3, 0.5, seed=1)[3], tmp_path / "run.npz"
    observations = cv.PrivatizedCounts(reports, 0.5)
    short = {"draws": 3, "tune": 2}
    model(**short).fit(observations, checkpoint=checkpoint)
    with pytest.raises(FileExistsError, match="which exists: give resume=True"):
        model(**short).fit(observations, checkpoint=checkpoint)
    model(**short).fit(observations, checkpoint=checkpoint, resume=True)
    with pytest.raises(ValueError, match="must have seed 5, got seed 4: fit with that seed"):
        model(**short | {"seed": 5}).fit(observations, checkpoint=checkpoint, resume=True)
    with pytest.raises(ValueError, match="must come from the same data and settings"):
        model(**short).fit(cv.PrivatizedCounts(reports, 0.6), checkpoint=checkpoint, resume=True)
    checkpoint.write_bytes(checkpoint.read_bytes()[:-200])
    with pytest.raises(ValueError, match="must be a file that a fit wrote"):
        model(**short).fit(observations, checkpoint=checkpoint, resume=True)
    with pytest.raises(ValueError, match="checkpoint requires one of"):
        cv.TopicModel(3, method="em").fit(observations, checkpoint=checkpoint)


def test_chains_whose_model_has_no_seed_go_on_under_their_own(tmp_path):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    short = {"draws": 3, "tune": 2, "seed": None}
    first = model(**short).fit(observations, checkpoint=checkpoint)
    again = model(**short).fit(observations, checkpoint=checkpoint, resume=True)
    assert again.seed_ == first.seed_ == checkpoints.seed_of(checkpoint)
    for one, other in zip(draws_of(again), draws_of(first), strict=True):
        np.testing.assert_array_equal(one, other)
    assert model(**short).fit(observations).seed_ != first.seed_


def test_a_number_of_topics_that_is_chosen_is_the_same_when_chains_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "CANDIDATES", (1, 2))
    monkeypatch.setattr(choosing, "FEWER", ())
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    short = {"likelihood": "poisson", "draws": 3, "tune": 2, "chains": 2, "threads": 1, "progress": False}
    first = cv.TopicModel("auto", **short).fit(observations, checkpoint=checkpoint)
    again = cv.TopicModel("auto", **short).fit(observations, checkpoint=checkpoint, resume=True)
    assert (again.seed_, again.n_topics_) == (first.seed_, first.n_topics_)
    np.testing.assert_array_equal(again.selection_.scores, first.selection_.scores)


@pytest.mark.parametrize("apart", [1.0, 2.0])
def test_chains_that_are_added_until_averages_are_steady_go_on_in_their_round(tmp_path, monkeypatch, apart):
    observations, path = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    monkeypatch.setattr(draws_module, "ROUNDS", (2, 4))
    monkeypatch.setattr(run, "unsteadiness", lambda *_: apart)
    options = {"draws": 5, "tune": 5, "chains": "auto", "threads": 1}
    whole = model(**options).fit(observations)
    step, last = gibbs.step, run.Streams.of_chain(4, 1 if apart == 1.0 else 3)

    def dying(state, plan, factorization, streams, engine):
        if state.sweep == 7 and streams == last:
            raise MemoryError("no room")
        return step(state, plan, factorization, streams, engine)

    monkeypatch.setattr(gibbs, "step", dying)
    with pytest.raises(MemoryError, match="no room"):
        model(**options).fit(observations, checkpoint=path)
    monkeypatch.setattr(gibbs, "step", step)
    again = model(**options).fit(observations, checkpoint=path, resume=True)
    for one, other in zip(draws_of(again), draws_of(whole), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_seed_is_read_without_the_chains(tmp_path, monkeypatch):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    model(draws=3, tune=2).fit(observations, checkpoint=checkpoint)
    read, right = [], np.lib.npyio.NpzFile.__getitem__
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", lambda self, name: read.append(name) or right(self, name))
    assert checkpoints.seed_of(checkpoint) == 4
    assert set(read) == {"format", "seed", "fingerprint"}


@dataclass(frozen=True)
class Plain(GammaPrior):
    """A gamma prior of another kind."""

    kind = "plain"


class Other(LogNormalPrior):
    """A prior with the same numbers, and not the same law."""

    kind = "other"


class Topics(cv.TopicModel):
    """Topics with another prior of the rows' factor."""

    prior: object

    def _model(self, spec, sizes, mean_count):
        return factorization(spec, sizes, {"theta": self.prior, "phi": GammaPrior(0.5, 1.0, True)})


@pytest.mark.parametrize(
    ("first", "same", "others"),
    [
        (Plain(2.0, 1.0, False), Plain(2.0, 1.0, False), [Plain(3.0, 1.0, False), GammaPrior(2.0, 1.0, False)]),
        (LogNormalPrior(0.0, 1.0), LogNormalPrior(0.0, 1.0), [LogNormalPrior(0.0, 2.0), Other(0.0, 1.0)]),
    ],
)
def test_priors_are_told_apart_by_their_facts(tmp_path, first, same, others):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"

    def fit(prior, **options):
        fresh = Topics(3, draws=3, tune=2, chains=1, seed=4, threads=1)
        fresh.prior = prior
        fresh.fit(observations, checkpoint=checkpoint, **options)

    fit(first)
    fit(same, resume=True)
    for other in others:
        with pytest.raises(ValueError, match="must come from the same data and settings"):
            fit(other, resume=True)


UNWRITTEN = r"checkpoint .*run.npz cannot be written \({}\): the fit continues"


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    model(draws=3, tune=2).fit(observations, checkpoint=checkpoint)
    before = checkpoint.read_bytes()

    def fail(*arguments, **content):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.warns(RuntimeWarning, match=UNWRITTEN.format("disk full")):
        model(draws=3, tune=2).fit(observations, checkpoint=checkpoint, resume=True)
    assert checkpoint.read_bytes() == before
    assert list(tmp_path.iterdir()) == [checkpoint]


@contextmanager
def full_disk():
    """Files of more than 1 KB cannot be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def removed(folder):
    """In place of a full disk, a folder that is gone once a fit runs."""

    @contextmanager
    def trouble():
        prepare = run.prepare_checkpoint

        def then_gone(*arguments):
            found = prepare(*arguments)
            folder.rmdir()
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "prepare_checkpoint", then_gone)
            yield

    return trouble


@pytest.mark.filterwarnings("ignore:Not safe yet:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("trouble", "reason"), [("full", "File too large"), ("removed", "No such file or directory")])
def test_a_fit_whose_checkpoint_cannot_be_written_warns_once_and_is_whole(tmp_path, trouble, reason):
    observations, folder = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "folder"
    folder.mkdir()
    context = full_disk if trouble == "full" else removed(folder)
    with context(), pytest.warns(RuntimeWarning, match=UNWRITTEN.format(reason)) as caught:
        found = model(draws=40).fit(observations, checkpoint=folder / "run.npz", checkpoint_minutes=1e-5)
    assert sum("checkpoint" in str(warning.message) for warning in caught) == 1
    for one, other in zip(draws_of(found), draws_of(model(draws=40).fit(observations)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not folder.exists() or list(folder.iterdir()) == []


def test_checkpoints_are_written_again_once_there_is_room(tmp_path, monkeypatch):
    saver, path, draws = checkpoints.Saver(), tmp_path / "run.npz", (np.zeros((1, 2)),)
    with full_disk(), pytest.warns(RuntimeWarning, match=UNWRITTEN.format("File too large")):
        saver.write(path, "a" * 5000, 1, [None], draws, 1.0)
    assert not path.exists()
    saver.write(path, "a" * 5000, 1, [None], draws, 1.0)
    assert path.exists()


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.filterwarnings("ignore:fit was interrupted")
@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_ctrl_c_after_a_checkpoint_that_could_not_be_written_returns_the_draws(tmp_path, monkeypatch):
    step, folder = gibbs.step, tmp_path / "folder"
    folder.mkdir()

    def interrupting(state, *rest):
        if state.sweep == 5:
            while not failed:
                time.sleep(0.001)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return step(state, *rest)

    def write(*arguments, real=checkpoints.write):
        try:
            real(*arguments)
        except OSError:
            failed.append(1)
            raise

    failed = []
    monkeypatch.setattr(checkpoints, "write", write)
    monkeypatch.setattr(gibbs, "step", interrupting)
    observations = planted(30, 20, 3, 0.5, seed=1)[2]
    long = model(draws=10**5, tune=0, chains=1, threads=1)
    with removed(folder)(), pytest.warns(RuntimeWarning, match=UNWRITTEN.format("No such file or directory")):
        long.fit(observations, checkpoint=folder / "run.npz", checkpoint_minutes=1e-5)
    assert long.interrupted_
    assert len(failed) >= 2
    assert long.posterior["posterior"].sizes["draw"] >= 5


def test_a_checkpoint_of_an_older_format_says_so(tmp_path):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    short = {"draws": 3, "tune": 2}
    model(**short).fit(observations, checkpoint=checkpoint)
    with np.load(checkpoint, allow_pickle=False) as stored:
        content = {name: stored[name] for name in stored.files if name != "seconds"}
    with open(checkpoint, "wb") as file:
        np.savez(file, **(content | {"format": np.array(5)}))
    with pytest.raises(ValueError, match="must have format 7, got 5"):
        model(**short).fit(observations, checkpoint=checkpoint, resume=True)


def test_the_time_of_a_resumed_fit_is_that_of_all_its_parts(tmp_path):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    short = {"draws": 3, "tune": 2}
    model(**short).fit(observations, checkpoint=checkpoint)
    with np.load(checkpoint, allow_pickle=False) as stored:
        content = dict(stored)
    assert 0.0 < content["seconds"] < 100.0
    with open(checkpoint, "wb") as file:
        np.savez(file, **(content | {"seconds": np.array(3600.0)}))
    resumed = model(**short).fit(observations, checkpoint=checkpoint, resume=True)
    assert 3600.0 < resumed.fit_seconds_ < 3700.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(chain0_draws0=c["chain0_draws0"][:, None]), "must hold whole chains"),
        (lambda c: c.update(chain0_draws0=np.zeros((9, *c["chain0_draws0"].shape[1:]))), "must hold whole chains"),
        (lambda c: c.pop("chain0_draws0"), "must hold whole chains, got: 'chain0_draws0'"),
        (lambda c: c.pop("seconds"), "must hold whole chains, got: 'seconds'"),
    ],
)  # fmt: skip
def test_chains_of_other_shapes_are_refused(tmp_path, change, said):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    short = {"draws": 3, "tune": 2}
    model(**short).fit(observations, checkpoint=checkpoint)
    with np.load(checkpoint, allow_pickle=False) as stored:
        content = dict(stored)
    change(content)
    with open(checkpoint, "wb") as file:
        np.savez(file, **content)
    with pytest.raises(ValueError, match=said):
        model(**short).fit(observations, checkpoint=checkpoint, resume=True)


def test_a_checkpoint_that_declares_more_than_it_holds_is_refused(tmp_path):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    head = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (20000000000,), }"
    with zipfile.ZipFile(checkpoint, "w") as archive:
        archive.writestr("format.npy", head.ljust(127) + b"\n")
    with pytest.raises(ValueError, match=r"must hold what it declares, got 128 bytes for shape \(20000000000,\)"):
        model(draws=3, tune=2).fit(observations, checkpoint=checkpoint, resume=True)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("chain0_state.0.0", np.nan),
        ("chain0_state.0.1", np.inf),
        ("chain1_state.0.0", -1.0),
        ("chain0_state.0.0", 1e200),
        ("chain0_state.1.0", np.nan),
        ("chain0_state.3.0", np.nan),
        ("chain0_state.3.0", 1.0),
        ("chain0_draws0", np.nan),
        ("chain1_draws1", np.inf),
    ],
)
def test_numbers_that_no_chain_holds_are_refused_before_a_sweep(tmp_path, name, number):
    """A rate that is no number kept the loop over its count from ending."""
    observations = cv.PrivatizedCounts(planted(30, 20, 2, 0.5, seed=1)[3], 0.5)
    path = tmp_path / "run.npz"
    options = {"draws": 4, "tune": 2, "likelihood": "negative-binomial"}
    model(**options).fit(observations, checkpoint=path)
    with np.load(path) as stored:
        content = dict(stored)
    resumed = model(**options).fit(observations, checkpoint=path, resume=True)
    assert np.isfinite(draws_of(resumed)[0]).all()
    content[name].flat[-1] = number
    np.savez(path, **content)
    with pytest.raises(ValueError, match=r"checkpoint .*run\.npz must hold"):
        model(**options).fit(observations, checkpoint=path, resume=True)
