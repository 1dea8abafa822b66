"""``countveil join``: releases of the same counts in one file, which every command that reads a release reads."""

import json

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.privacy._covariates import Covariate, RowCovariates
from countveil.privacy._extras import Extras
from tests.commands import SHORT, fails, run

pytestmark = pytest.mark.long

RNG = np.random.default_rng(3)
COUNTS = pd.DataFrame(
    RNG.poisson(4.0, (10, 6)), index=[f"p{d}" for d in range(10)], columns=[f"w{v}" for v in range(6)]
)
TIME = ["--likelihood", "poisson", "--draws", "4", "--tune", "4", "--chains", "2", "--seed", "1", "--threads", "1"]


def released(path, rows=10, level="1", **beside):
    noisy = cv.privatize(COUNTS[:rows], cv.PrivacyLevel(level, 2))
    cv.Release(noisy.reports, noisy.mechanism, noisy.truncated, noisy.labels, **beside).save(path)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with two releases of the same counts, the second of fewer people."""
    monkeypatch.chdir(tmp_path)
    released("spring.npz")
    released("autumn.npz", 8, "2")
    return tmp_path


def joined(*more):
    return run("join", "spring.npz", "autumn.npz", "-o", "both.npz", *more)


def test_it_says_what_was_joined_and_what_that_promises(here):
    together = cv.join(["spring.npz", "autumn.npz"]).promise
    said = joined().stdout
    assert said == f"2 releases of 10 x 6 counts: 8 of 10 rows are in more than one. {together}\nWrote both.npz.\n"
    assert "more than e^3" in together
    assert cv.join("both.npz").promise == together
    assert joined("--quiet", "--force").stdout == ""
    found = json.loads(joined("--json", "--force").stdout)
    assert found == {
        "output": "both.npz",
        "releases": 2,
        "shape": [10, 6],
        "repeated_rows": 8,
        "masked": 0,
        "simulated": False,
        "source": None,
        "promise": together,
    }
    run("join", "both.npz", "spring.npz", "-o", "more.npz", status=1)  # the same report twice
    released("winter.npz")
    assert (
        "3 releases of 10 x 6 counts: 10 of 10 rows" in run("join", "both.npz", "winter.npz", "-o", "more.npz").stdout
    )


def test_what_cannot_be_joined_is_refused_in_one_line_and_nothing_is_written(here):
    (here / "counts.csv").write_text("a,b\n1,2\n")
    (here / "damaged.npz").write_bytes((here / "spring.npz").read_bytes()[:-1])
    (here / "folder").mkdir()
    for paths, rule in (
        (["spring.npz"], "releases must be two or more to be joined, got 1"),
        (["spring.npz", "spring.npz"], "must have independent noise, got the same reports"),
        (["spring.npz", "none.npz"], "no release at none.npz"),
        (["spring.npz", "counts.csv"], "counts.csv must be a release, got a table"),
        (["spring.npz", "folder"], "folder must be a file of a release, got a folder"),
        (["spring.npz", "damaged.npz"], "damaged.npz must end with its SHA-256 seal"),
    ):
        assert rule in fails("join", *paths, "-o", "both.npz")
    assert not (here / "both.npz").exists()
    assert "output must end in .npz, got both.csv" in fails("join", "spring.npz", "autumn.npz", "-o", "both.csv")
    assert "which this command needs" in fails("join", "spring.npz", "autumn.npz", "-o", "spring.npz", "--force")
    joined()
    assert "both.npz exists already" in fails("join", "spring.npz", "autumn.npz", "-o", "both.npz")
    assert "Usage:" in run("join", "-h").stdout


def test_topics_of_the_file_are_those_of_python_to_the_bit(here):
    joined()
    said = " ".join(run("fit", "topics", "both.npz", "-o", "fit.nc", *SHORT).stdout.split())
    assert "2 releases of 10 x 6 counts" in said
    assert "All reports of one record together" in said
    options = {"draws": 8, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
    other = cv.TopicModel(2, **options).fit(cv.join(["spring.npz", "autumn.npz"]))
    found = cv.TopicModel.load("fit.nc").posterior["posterior"]
    for name in ("theta", "phi"):
        np.testing.assert_array_equal(found[name], other.posterior["posterior"][name])


def test_pages_and_checklists_state_all_releases_and_what_they_promise_together(here):
    joined()
    run("fit", "topics", "both.npz", "-o", "fit.nc", *SHORT)
    together = cv.join("both.npz").promise
    run("report", "fit.nc", "-o", "fit.html", "--release", "both.npz")
    page = (here / "fit.html").read_text(encoding="utf-8")
    listed = run("checklist", "fit.nc", "--release", "both.npz").stdout
    for text in (page, listed):
        assert "In the words of release 1 of 2: 10 x 6 counts" in text
        assert "In the words of release 2 of 2: 8 x 6 counts" in text
        assert together in text
        assert "as whoever made this fit has stated" not in text
    assert "Simulated releases" in page
    assert "the 2 releases that they made state it" in listed
    assert "The statement above has it." in listed
    assert "Level as it was stated.** The fit keeps" in run("checklist", "fit.nc").stdout
    run("browse", "fit.nc", "-o", "browse.html")
    assert together in (here / "browse.html").read_text(encoding="utf-8")
    released("another.npz", 8, "3")
    run("join", "spring.npz", "another.npz", "-o", "another-both.npz")
    refused = "release must be the one that was fitted"
    for release in ("spring.npz", "another-both.npz"):
        assert refused in fails("checklist", "fit.nc", "--release", release)
        assert refused in fails("report", "fit.nc", "-o", "x.html", "--release", release)
    naive = fails("report", "fit.nc", "-o", "x.html", "--release", "both.npz", "--naive")
    assert "naive needs the release that was fitted, got joined ones" in naive


def test_numbers_of_topics_are_compared(here):
    joined()
    said = run(
        "compare", "both.npz", "--topics", "1,2", "--draws", "3", "--tune", "2", "--folds", "2", "--seed", "1"
    ).stdout
    assert "2 releases of 10 x 6 counts" in said
    assert "Log predictive probability" in said


def test_a_checkpoint_goes_on_with_the_same_file_alone(here):
    joined()
    asked = ["fit", "topics", "both.npz", "-o", "fit.nc", *SHORT, "--checkpoint", "c.npz"]
    run(*asked)
    first = cv.TopicModel.load("fit.nc").posterior["posterior"]["theta"].to_numpy()
    run(*asked, "--resume", "--force")
    np.testing.assert_array_equal(cv.TopicModel.load("fit.nc").posterior["posterior"]["theta"], first)
    released("autumn.npz", 8, "2")
    joined("--force")
    refused = run(*asked, "--resume", "--force", status=1).stderr
    assert refused.startswith("error: ")
    assert "c.npz" in refused


def test_covariates_that_the_releases_carry_are_read(here):
    party = Covariate("party", ("D", "R"))
    for path in ("spring.npz", "autumn.npz"):
        stated = RowCovariates((party,), tuple((p,) for p in "DR" * 5))
        released(path, extras=Extras(covariates=stated))
    joined()
    said = run("fit", "topics", "both.npz", "-o", "fit.nc", *SHORT, "--prevalence", "~ party").stdout
    assert "party[T.R]" in said


def test_networks_tensors_and_time_steps_are_joined(here):
    rng = np.random.default_rng(1)
    level = cv.PrivacyLevel(1, 1)
    for name, counts in (
        ("network", rng.poisson(3.0, (6, 6))),
        ("tensor", rng.poisson(3.0, (4, 3, 2))),
        ("months", pd.DataFrame(rng.poisson(4.0, (6, 4)), index=[f"2001-0{i}" for i in range(1, 7)])),
    ):
        for number in (1, 2):
            cv.privatize(counts, level).save(f"{name}{number}.npz")
        run("join", f"{name}1.npz", f"{name}2.npz", "-o", f"{name}.npz")
    run("fit", "blocks", "network.npz", "-o", "network.nc", "--communities", "2", *TIME)
    run("fit", "tensor", "tensor.npz", "-o", "tensor.nc", "--components", "2", *TIME)
    run("fit", "dynamic", "months.npz", "-o", "months.nc", "--components", "2", *TIME)
    for name in ("network", "tensor", "months"):
        assert "several reports" not in run("checklist", f"{name}.nc", "--release", f"{name}.npz").stderr


def test_noise_from_a_seed_and_imported_reports_are_told(here):
    released("seeded.npz", 8, "2", simulated=True)
    said = run("join", "spring.npz", "seeded.npz", "-o", "both.npz").stdout
    assert said.startswith("One of these releases, or more, is simulated")
    table = (COUNTS // 3 * 3).to_csv()
    (here / "rounded.csv").write_text(table)
    asked = ["--mechanism", "rounding", "--base", "3", "--source", "Others, 2020"]
    run("import", "rounded.csv", "-o", "rounded.npz", *asked)
    said = run("join", "spring.npz", "rounded.npz", "-o", "both.npz", "--force").stdout
    assert "These reports were imported from: Others, 2020." in said
    assert "no level of privacy that could be added up" in said
