"""A run that dies goes on: the finished chain is the uninterrupted one, bit for bit."""

import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

import countveil as cv
from tests.joint import planted

SCRIPT = """
import sys
import numpy as np
import countveil as cv
reports = np.load(sys.argv[1])
model = cv.TopicModel(3, method=sys.argv[3], draws=300, tune=100, chains=2, seed=4, threads=2)
model.fit(cv.PrivatizedCounts(reports, 0.5), checkpoint=sys.argv[2], checkpoint_minutes=0.0002)
"""


def model(method="gibbs", **changes):
    options = {"draws": 300, "tune": 100, "chains": 2, "seed": 4, "threads": 2} | changes
    return cv.TopicModel(3, method=method, **options)


def draws_of(fit):
    groups = fit.posterior
    stats = groups["sample_stats"]
    return [groups["posterior"][name].to_numpy() for name in ("theta", "phi", "theta_rate")] + [
        stats["log_likelihood"].to_numpy()
    ]


@pytest.mark.filterwarnings("ignore:The chains:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["gibbs", "augmented-gibbs"])
def test_killed_and_resumed_is_the_same_as_never_killed(tmp_path, method):
    reports = planted(300, 60, 3, 0.5, seed=1)[3]
    data, checkpoint = tmp_path / "reports.npy", tmp_path / "run.npz"
    np.save(data, reports)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(data), str(checkpoint), method])
    deadline = time.monotonic() + 120
    while not (checkpoint.exists() and kept(checkpoint) >= 5) and time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    observations = cv.PrivatizedCounts(reports, 0.5)
    assert 5 <= kept(checkpoint) < 300
    resumed = model(method).fit(observations, checkpoint=checkpoint, resume=True)
    whole = model(method).fit(observations)
    for one, other in zip(draws_of(resumed), draws_of(whole), strict=True):
        np.testing.assert_array_equal(one, other)


def kept(checkpoint):
    with np.load(checkpoint, allow_pickle=False) as stored:
        return len(stored["chain0_draws0"]) if "chain0_draws0" in stored.files else 0


def test_what_does_not_fit_is_refused(tmp_path):
    reports, checkpoint = planted(30, 20, 3, 0.5, seed=1)[3], tmp_path / "run.npz"
    observations = cv.PrivatizedCounts(reports, 0.5)
    short = {"draws": 3, "tune": 2}
    model(**short).fit(observations, checkpoint=checkpoint)
    with pytest.raises(FileExistsError, match="exists: resume from it, or remove it first"):
        model(**short).fit(observations, checkpoint=checkpoint)
    model(**short).fit(observations, checkpoint=checkpoint, resume=True)
    for other, data in ((short | {"seed": 5}, observations), (short, cv.PrivatizedCounts(reports, 0.6))):
        with pytest.raises(ValueError, match="must be of the same data and settings"):
            model(**other).fit(data, checkpoint=checkpoint, resume=True)
    checkpoint.write_bytes(checkpoint.read_bytes()[:-200])
    with pytest.raises(ValueError, match="must be a file that a fit wrote"):
        model(**short).fit(observations, checkpoint=checkpoint, resume=True)
    with pytest.raises(ValueError, match="checkpoint goes with one of"):
        cv.TopicModel(3, method="em").fit(observations, checkpoint=checkpoint)


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    model(draws=3, tune=2).fit(observations, checkpoint=checkpoint)
    before = checkpoint.read_bytes()

    def fail(*arguments, **content):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        model(draws=3, tune=2).fit(observations, checkpoint=checkpoint, resume=True)
    assert checkpoint.read_bytes() == before
    assert list(tmp_path.iterdir()) == [checkpoint]


def test_a_checkpoint_of_an_older_format_says_so(tmp_path):
    observations, checkpoint = planted(30, 20, 3, 0.5, seed=1)[2], tmp_path / "run.npz"
    short = {"draws": 3, "tune": 2}
    model(**short).fit(observations, checkpoint=checkpoint)
    with np.load(checkpoint, allow_pickle=False) as stored:
        content = {name: stored[name] for name in stored.files if name != "seconds"}
    with open(checkpoint, "wb") as file:
        np.savez(file, **(content | {"format": np.array(3)}))
    with pytest.raises(ValueError, match="must have format 4, got 3"):
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
    with pytest.raises(
        ValueError, match=r"must hold what it declares, got 128 bytes for shape \(20000000000,\)"
    ):
        model(draws=3, tune=2).fit(observations, checkpoint=checkpoint, resume=True)
