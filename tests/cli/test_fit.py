"""``countveil fit``: what all fits share is tested with topics."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.cli import fit as fits
from countveil.cli import options
from countveil.data.networks import above_diagonal
from countveil.fit.effects import Effects
from countveil.fit.layers import tree_of
from countveil.fit.totals import totals_of
from countveil.inference.methods import METHODS, in_words
from tests.commands import SHORT, fails, privatized, run
from tests.joint import short_choices

ACTORS = [f"actor{i}" for i in range(7)]
QUICK = SHORT[2:]
LEVEL = cv.PrivacyLevel(1, 1)


@pytest.fixture
def network(tmp_path, monkeypatch):
    """A working directory with a release of a network in it."""
    monkeypatch.chdir(tmp_path)
    counts = pd.DataFrame(np.random.default_rng(2).poisson(2.0, (7, 7)), index=ACTORS, columns=ACTORS)
    cv.privatize(counts, LEVEL).save(tmp_path / "network.npz")
    return tmp_path


def test_the_fit_is_a_netcdf_file(here):
    privatized()
    assert "output must end in .nc (netCDF), got f.npz" in fails("fit", "topics", "r.npz", "-o", "f.npz")


def test_help_says_what_the_records_of_methods_say():
    assert in_words() == options.METHODS.removeprefix("How to fit: ")
    samplers = [name for name, method in METHODS.items() if method.samples]
    assert fits.CHECKPOINT.endswith(f"with method {' or '.join(samplers)}.")


def words(said):
    """What a table says, without its lines."""
    return " ".join(re.findall(r"[^\s\u2500-\u257f]+", said))


def test_topics_are_printed_before_a_save_that_fails(here, monkeypatch):
    privatized()

    def full(self, path):
        raise OSError("no space left")

    monkeypatch.setattr(cv.TopicModel, "save", full)
    found = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, status=1)
    assert found.stderr.strip().splitlines()[-1] == "error: no space left"
    assert "Topics by share of all expected words " in found.stdout
    assert "most probable words: probability in % (90% interval)" in found.stdout
    assert "word" in found.stdout
    assert "Wrote" not in found.stdout


def test_a_method_without_calibrated_intervals_prints_none_and_says_why(here):
    privatized()
    found = run("fit", "topics", "r.npz", "-o", "f.nc", "--topics", "2", "--seed", "1", "--method", "em")
    assert "most probable words: probability in % " in words(found.stdout)
    assert "No intervals: those of method 'em' are not calibrated." in found.stdout
    own, _, total = found.stdout.partition("Expected sum of counts:")
    assert "from the reports, without a model (90% interval)" in words(total)
    assert "90%" not in own
    assert not re.search(r"\d to \d", own)


@pytest.mark.long
def test_a_number_of_topics_that_is_chosen_says_by_what(here, monkeypatch):
    privatized()
    short_choices(monkeypatch)
    found = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT[2:], "--topics", "auto", "--seed", "1")
    assert re.search(r"n_topics=\d(, [\w ]+)? predicts held-out reports best\.", found.stdout)
    fit = cv.TopicModel.load("f.nc")
    assert fit.n_topics == "auto"
    assert fit.n_topics_ in (1, 2)
    for wrong in ("0", "many", "2.5", "-3"):
        misused = run("fit", "topics", "r.npz", "-o", "g.nc", "--topics", wrong, status=2)
        assert "must be a whole number of at least 1, or" in words(misused.stderr)


def test_weights_of_chains_are_said_where_they_differ(here):
    privatized()
    asked = ["fit", "topics", "r.npz", *SHORT, "--force", "-o", "f.nc"]
    said = words(run(*asked, "--weights", "stacked").stdout)
    weights = cv.TopicModel.load("f.nc").weights_
    assert weights[0] != weights[1]
    assert f"Weights of the chains: {weights[0]:.2f}, {weights[1]:.2f}." in said
    assert "Weights of the chains" not in run(*asked).stdout
    refused = fails(*asked, "--method", "em", "--weights", "stacked")
    assert "weights requires method 'gibbs' or method 'augmented-gibbs', got method 'em'" in words(refused)


def test_checkpoints_are_handed_on(here, monkeypatch):
    privatized()
    seen = {}

    def fit(self, data, **options):
        seen.update(options)
        raise ValueError("enough")

    with monkeypatch.context() as patched:
        patched.setattr(cv.TopicModel, "fit", fit)
        command = ["fit", "topics", "r.npz", "-o", "f.nc", "--checkpoint", "c.npz"]
        Path("c.npz").touch()
        fails(*command, "--checkpoint-minutes", "0.5", "--resume")
        Path("c.npz").unlink()
    assert seen == {"checkpoint": Path("c.npz"), "checkpoint_minutes": 0.5, "resume": True}
    assert "--resume must come with --checkpoint" in fails("fit", "topics", "r.npz", "-o", "f.nc", "--resume")
    assert "checkpoint requires one of" in fails(*command, "--method", "em")
    (here / "c.npz").write_text("precious")
    assert "c.npz" in fails(*command, *SHORT)
    assert (here / "c.npz").read_text() == "precious"
    (here / "c.npz").unlink()
    run(*command, *SHORT)
    assert cv.TopicModel.load("f.nc").seed_ == 1


@pytest.mark.parametrize(
    ("command", "model"),
    [(["topics"], cv.TopicModel), (["blocks"], cv.BlockModel), (["tensor", "--shape", "20,4,2"], cv.TensorModel)],
)
def test_options_that_all_fits_share_reach_the_model(here, monkeypatch, command, model):
    privatized()
    seen = {}

    def fit(self, data, **options):
        seen.update({name: getattr(self, name) for name in expected if name not in options}, **options)
        raise ValueError("enough")

    monkeypatch.setattr(model, "fit", fit)
    expected = {
        "method": "gibbs", "draws": None, "tune": 200, "chains": "auto", "seed": None, "threads": None, "engine": None,
        "likelihood": None, "dispersion": None, "prior_shape": None,
        "checkpoint": None, "checkpoint_minutes": 5.0, "resume": False,
    }  # fmt: skip
    asked = ["fit", *command, "r.npz", "-o", "f.nc"]
    fails(*asked)
    assert seen == expected
    expected = {
        "method": cv.Gibbs(weights="stacked"), "draws": 1, "tune": 2, "chains": 3, "seed": 4, "threads": 5, "engine": "tcp://a:1",
        "likelihood": "negative-binomial", "dispersion": "column", "prior_shape": 0.3,
        "checkpoint": Path("c.npz"), "checkpoint_minutes": 6.5, "resume": True,
    }  # fmt: skip
    named = {"scheduler" if name == "engine" else name.replace("_", "-"): value for name, value in expected.items()}
    for name in ("f.nc", "c.npz"):
        (here / name).touch()
    del named["resume"]
    named |= {"method": "gibbs", "weights": "stacked"}
    fails(*asked, "--resume", "--force", *(part for name, value in named.items() for part in (f"--{name}", value)))
    assert seen == expected


def test_totals_are_said_by_the_fit_and_by_the_reports(here):
    privatized()
    poisson = ["--likelihood", "poisson"]
    said = " ".join(run("fit", "topics", "r.npz", "-o", "f.nc", *poisson, *SHORT).stdout.split())
    fit, release = cv.TopicModel.load("f.nc"), cv.Release.load("r.npz")
    found = totals_of(fit, fit._observed(release))
    assert f"Expected sum of counts: {found}." in said
    assert " from the reports, without a model (90% interval)" in str(found)
    assert "Try" not in said
    assert "dispersion" not in said


@pytest.mark.long
def test_a_fit_that_leaves_counts_out_is_told_what_to_try(here):
    counts = np.random.default_rng(1).negative_binomial(0.05, 0.02, (150, 8))
    cv.simulate_release(counts, cv.PrivacyLevel("0.3", 1), np.random.default_rng(2)).save(here / "b.npz")
    asked = ["fit", "topics", "b.npz", *SHORT, "--draws", "20", "--tune", "40", "-o"]
    assert 'Try likelihood="negative-binomial"' in " ".join(
        run(*asked, "f.nc", "--likelihood", "poisson").stdout.split()
    )
    said = " ".join(run(*asked, "g.nc", "--likelihood", "negative-binomial").stdout.split())
    assert "Each word has its own dispersion p, from 0." in said
    assert "Try" not in said


def test_a_dispersion_may_be_a_number(here):
    privatized()
    bursty = ["--likelihood", "negative-binomial", "--dispersion"]
    said = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, *bursty, "0.75").stdout
    assert "The dispersion p is 0.75, which was given: the variance of a count is 4 times" in " ".join(said.split())
    assert cv.TopicModel.load("f.nc").dispersion == 0.75
    run("fit", "topics", "r.npz", "-o", "g.nc", *SHORT, *bursty, "column")
    for wrong in ("word", "1.5", "nan"):
        message = fails("fit", "topics", "r.npz", "-o", "h.nc", *SHORT, *bursty, wrong)
        assert "dispersion must be one of ['global', 'column', 'row'] or a number" in message


def test_a_simulated_release_is_called_so(here):
    privatized()
    release = cv.Release.load("r.npz")
    assert "simulated" not in run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT).stdout
    dataclasses.replace(release, simulated=True).save("s.npz")
    assert "This release is simulated" in run("fit", "topics", "s.npz", "-o", "g.nc", *SHORT).stdout


def test_fit_refuses_in_one_line(here):
    assert "no release at r.npz" in fails("fit", "topics", "r.npz", "-o", "f.nc")
    assert "counts.csv must be a release, got a table" in fails("fit", "topics", "counts.csv", "-o", "f.nc")
    privatized()
    damaged = bytearray((here / "r.npz").read_bytes())
    damaged[40] ^= 1
    (here / "bad.npz").write_bytes(damaged)
    assert "SHA-256" in fails("fit", "topics", "bad.npz", "-o", "f.nc")
    assert "method must be one of" in fails("fit", "topics", "r.npz", "-o", "f.nc", "--method", "magic")
    assert not (here / "f.nc").exists()
    assert sorted(path.name for path in here.iterdir()) == ["bad.npz", "counts.csv", "r.npz"]


@pytest.mark.long
def test_blocks_of_a_directed_network(network):
    said = run("fit", "blocks", "network.npz", "-o", "fit.nc", "--communities", "2", "--self-loops", *QUICK).stdout
    fit = cv.BlockModel.load("fit.nc")
    assert (fit.n_communities, fit.directed, fit.self_loops) == (2, True, True)
    assert list(fit.posterior["posterior"]["actor"].to_numpy()) == ACTORS
    assert "Communities by share of all expected messages " in said
    assert "community support share strongest actors: share of the community in % (90% interval)" in words(said)
    for row in fit.top_actors(1).itertuples():
        assert f"{row.actor} {100 * row.probability:.1f} ({100 * row.lower:.1f} to" in said
        assert f"{row.prevalence:.1%}" in said
    assert "Wrote fit.nc: seed 1," in said


def test_blocks_of_an_undirected_network(network):
    asked = ["fit", "blocks", "network.npz", "-o", "fit.nc", "--undirected", *QUICK]
    assert "must report each pair once, above the diagonal" in fails(*asked)
    above_diagonal(cv.Release.load("network.npz")).save("network.npz")
    run(*asked, "--communities", "3")
    pi = cv.BlockModel.load("fit.nc").blocks_
    np.testing.assert_allclose(pi, pi.T, rtol=1e-6)


def test_blocks_by_covariates_of_the_actors(network):
    pd.DataFrame({"size": np.arange(len(ACTORS)) + 1.0}, index=ACTORS).to_csv("who.csv")
    asked = ["fit", "blocks", "network.npz", "-o", "fit.nc", "--communities", "2", *QUICK]
    said = run(*asked, "--prevalence", "~ log(size)", "--covariates", "who.csv").stdout
    assert "Coefficients, of the log of expected messages" in said
    assert cv.BlockModel.load("fit.nc").effects.table()["term"].tolist() == ["log(size)", "log(size)"]
    assert "must come with --covariates" in fails(*asked, "--force", "--prevalence", "~ size")


@pytest.mark.long
def test_components_of_a_tensor(network):
    events = pd.DataFrame({"who": ["a", "b", "c"] * 8, "what": ["x", "y"] * 12, "year": [1, 2, 3, 4] * 6})
    categories = {"who": ["a", "b", "c"], "what": ["x", "y"], "year": [1, 2, 3, 4]}
    table = cv.count_table(events, list(categories), categories=categories)
    cv.privatize(table, LEVEL).save("events.npz")
    asked = ["fit", "tensor", "events.npz", "-o", "fit.nc", "--components", "2", *QUICK]
    said = run(*asked, "--modes", "who, what, year").stdout
    fit = cv.TensorModel.load("fit.nc")
    assert fit.posterior["posterior"]["factor_year"].shape == (2, 8, 4, 2)
    assert list(fit.posterior["posterior"]["what"].to_numpy()) == ["x", "y"]
    for mode in ("who", "what", "year"):
        assert f"Components by share of all expected counts: {mode} " in said
    assert "component support share largest entries: share of the component in % (90% interval)" in words(said)
    pd.DataFrame({"size": [1.0, 2.5, 4.0]}, index=list("abc")).to_csv("who.csv")
    formula = "--prevalence", "~ size", "--covariates", "who.csv"
    said = run(*asked, "--modes", "who,what,year", *formula, "--force").stdout
    assert "Coefficients, of the log of expected counts" in said
    assert cv.TensorModel.load("fit.nc").effects.table()["term"].tolist() == ["size", "size"]
    run(*asked, "--shape", "3,4,2", "--force")
    assert cv.TensorModel.load("fit.nc").posterior["posterior"]["factor_mode1"].shape[2] == 4
    assert "whole numbers separated by commas, got '3,x'" in fails(*asked, "--shape", "3,x", "--force")
    assert "modes must name each of the 3 axes" in fails(*asked, "--modes", "a,b", "--force")


def test_what_is_not_square_is_no_network(network):
    cv.privatize(np.ones((3, 4), dtype=int), LEVEL).save("other.npz")
    said = fails("fit", "blocks", "other.npz", "-o", "fit.nc", *QUICK)
    assert "X must be square, one row and one column per actor, got 3 x 4" in said
    assert not (network / "fit.nc").exists()


def test_the_help_names_every_method():
    said = words(run("fit", "topics", "--help").stdout)
    assert all(re.search(rf"(?<![a-z-]){name}(?![a-z-])", said) for name in METHODS)


def test_components_that_only_some_chains_found_are_counted_and_left_out(capsys):
    release = cv.simulate_release(np.full((6, 8), 2), cv.PrivacyLevel(2, 1), np.random.default_rng(1))
    fit = cv.TopicModel(2, chains=3, draws=5, tune=2, seed=1, progress=False).fit(release)
    n_words = fit.posterior["posterior"].sizes["word"]
    for chain in range(3):
        fit.posterior["posterior"]["phi"][chain] = np.eye(n_words)[[0, 1 + chain]]
    fit._adopt(fit.posterior)
    fits.print_parts(fit, 1)
    said = " ".join(capsys.readouterr().out.split())
    assert "Not listed: 3 topics that at most half of the chains found." in said
    assert said.count("100.0 (100.0 to 100.0)") == 1


@pytest.mark.long
def test_topics_by_covariates(here, monkeypatch):
    counts = pd.DataFrame(np.random.default_rng(2).poisson(2.0, (9, 6)), index=[f"d{i}" for i in range(9)])
    cv.privatize(counts, LEVEL).save("own.npz")
    people = pd.DataFrame({"party": list("DRDRDRDRD"), "year": np.arange(9.0)}, index=counts.index)
    people.iloc[::-1].to_csv("people.csv")
    given = "fit", "topics", "own.npz", "-o", "f.nc", *SHORT
    found = run(*given, "--prevalence", "~ party + year", "--covariates", "people.csv")
    assert "Coefficients, of the log of expected words" in found.stdout
    assert re.search(r"party\[T.R\]\s*│\s*-?\d+\.\d\d \(-?\d+\.\d\d to -?\d+\.\d\d\)", found.stdout)
    fit = cv.TopicModel.load("f.nc")
    assert fit.get_params()["prevalence"] == "~ party + year"
    assert "Coefficients, of the log of expected words" in run("show", "f.nc").stdout
    assert [row["term"] for row in json.loads(run("show", "f.nc", "--json").stdout)["effects"]] == list(
        fit.effects.table().term
    )
    run("export", "f.nc", "tables")
    assert len(pd.read_csv("tables/effects.csv")) == len(fit.effects.table())
    assert len(json.loads(run("show", "f.nc", "--json").stdout)["contrasts"]) == len(fit.effects.contrasts())
    monkeypatch.setattr(Effects, "contrasts", lambda _: pytest.fail("nobody asked for contrasts"))
    run("show", "f.nc")
    assert "--covariates must come with --prevalence" in fails(*given, "--covariates", "people.csv")
    people.drop(index="d3").to_csv("people.csv")
    said = fails(*given, "--force", "--prevalence", "~ party", "--covariates", "people.csv")
    assert "none for 'd3'" in said


def test_a_checkpoint_that_is_not_there_yet_is_told(here):
    privatized()
    asked = ["fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "--checkpoint", "c.npz"]
    told = "There is no checkpoint c.npz yet: starting from the beginning."
    assert told in run(*asked, "--resume").stdout
    assert told not in run(*asked[:4], "g.nc", *asked[5:-1], "d.npz").stdout


@pytest.mark.long
def test_topics_over_time(here):
    counts = pd.DataFrame(np.random.default_rng(2).poisson(2.0, (9, 6)), index=[f"d{i}" for i in range(9)])
    cv.privatize(counts, LEVEL).save("own.npz")
    times = pd.Series([f"1998-{m:02}" for m in (1, 2, 3, 4, 5, 7, 8, 9, 9)], index=counts.index, name="month")
    times.iloc[::-1].to_csv("times.csv")
    given = "fit", "topics", "own.npz", "-o", "f.nc", *SHORT
    found = run(*given, "--time", "times.csv")
    assert "Expected share of a document over time" in found.stdout
    assert re.search(r"1998-01\s*┃.*1998-09", found.stdout)
    assert re.search(r"\d+% \(\d+ to \d+\)", found.stdout)
    fit = cv.TopicModel.load("f.nc")
    assert fit.dates_.names[5] == "1998-06"
    assert fit.dates_.step.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 8]
    assert "Expected share of a document over time" in run("show", "f.nc").stdout
    assert len(json.loads(run("show", "f.nc", "--json").stdout)["prevalence over time"]) == 2 * 9
    run("export", "f.nc", "tables")
    assert pd.read_csv("tables/prevalence_over.csv")["time"].tolist() == fit.effects.over_time().time.tolist()
    times.drop(index="d3").to_csv("times.csv")
    assert "none for 'd3'" in fails(*given, "--force", "--time", "times.csv")
    times.to_frame().assign(more=1).to_csv("times.csv")
    assert "times.csv must have two columns" in fails(*given, "--force", "--time", "times.csv")
    times.mask(times == "1998-03").to_csv("times.csv")
    assert "no missing dates, got 1, the first in row d2" in fails(*given, "--force", "--time", "times.csv")


@pytest.mark.long
def test_topics_of_topics(here):
    # At 1, one in twelve draws of the noise leaves no topic that both chains have.
    privatized("--epsilon", "20")
    given = "fit", "topics", "r.npz", "-o", "f.nc", *SHORT[2:]
    found = run(*given, "--topics", "3,2").stdout
    fit = cv.TopicModel.load("f.nc")
    assert fit.n_topics == [3, 2]
    tree = found[found.index("Topics of topics:") : found.index("Expected sum of counts")]
    assert tree in run("show", "f.nc").stdout
    assert "90% intervals, or undetermined where these are wider than 50 points.\n" in tree
    for node in tree_of(fit):
        assert f"\n  {node.said}\n    {node.below[0].said}\n" in tree
    shown = json.loads(run("show", "f.nc", "--json").stdout)["upper topics"]
    assert len(shown) == len(fit.parts.upper_topics())
    run("export", "f.nc", "tables")
    table = pd.read_csv("tables/upper_topics.csv")
    np.testing.assert_allclose(table["probability"], fit.parts.upper_topics()["probability"])
    run("report", "f.nc", "-o", "f.html")
    assert "--topics 3,2 " in run("checklist", "f.nc", "--release", "r.npz").stdout
    assert fails(*given, "--force", "--topics", "3,5").startswith("error: --topics must be one number, ")
    said = fails(*given, "--force", "--topics", "3,x")
    assert said.endswith("topics must be whole numbers separated by commas, got '3,x'")
