import pandas as pd
import pytest

from papers import NAMES, runner, skellam, theorems, topics_enron, topics_synthetic
from papers.fits import Sampling
from tests.papers.commands import refused, reproduce


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(skellam, "QUICK", skellam.Plan(2000))
    monkeypatch.setattr(theorems, "QUICK", theorems.Plan(20, 12))
    return tmp_path


def test_one_case_study(here):
    said = reproduce("skellam", "--quick", "-o", "out").stdout
    assert "What became of the papers' claims" in said
    assert said.count("holds") >= 4
    names = {"skellam.png", "skellam.svg", "skellam.csv", "skellam-verdicts.csv"}
    assert names <= {path.name for path in (here / "out").iterdir()}
    assert set(pd.read_csv("out/skellam-verdicts.csv")["outcome"]) == {"holds"}


@pytest.mark.long
def test_claims_that_fail_are_no_error(here):
    said = reproduce("theorems", "--quick", "-o", "out").stdout
    assert "does not hold" in said


def test_all_leaves_out_what_needs_data(here, monkeypatch):
    """Names in the help are those that there are; without data the claims that need them are not tested."""
    wanted = ("skellam", "links-enron", "topics-enron")
    monkeypatch.setattr("papers.__main__.NAMES", wanted)
    said = reproduce("all", "--quick", "-o", "out").stdout
    assert said.count("not tested") == 2
    assert "needs Enron's texts: pass its folder with --data" in " ".join(said.split())


def test_the_help_names_every_case_study():
    said = reproduce("--help").stdout
    assert all(name in said for name in NAMES)


def test_mistakes(here):
    (here / "file").write_text("")
    assert "name must be one of all, theorems, " in refused("nothing")
    assert refused("links-enron") == ("error: links-enron needs Enron's network: pass its folder with --data")
    assert "--data must be a folder of counts, got file, which is no folder" in refused("skellam", "--data", "file")
    assert "must be a directory for the files" in refused("skellam", "-o", "file")
    (here / "empty").mkdir()
    assert "--data must be a folder with enron_network/enron161.npz" in refused("links-enron", "--data", "empty")


def test_the_same_seed_draws_the_same_files(here):
    first = {}
    for out in ("one", "two"):
        runner.present(["skellam"], here / out, None, True, 1)
        first[out] = [(here / out / name).read_bytes() for name in ("skellam.png", "skellam.svg", "skellam.csv")]
    assert first["one"] == first["two"]


def test_fewer_repeats_than_the_papers():
    """A plan with noise draws or data sets is cut to what was asked for; one with fewer, or with neither, stays."""
    assert runner.at_most(topics_enron.FULL, 2) == topics_enron.FULL._replace(noise_draws=2)
    assert runner.at_most(topics_enron.FULL, 99) == topics_enron.FULL
    assert runner.at_most(topics_synthetic.FULL, 3).data_sets == 3
    assert runner.at_most(skellam.QUICK, 1) == skellam.QUICK


def test_repeats_from_the_command_line(here, monkeypatch):
    asked = []
    monkeypatch.setattr(runner, "at_most", lambda plan, *given: asked.append(given) or plan)
    reproduce("skellam", "--quick", "-o", "out", "--repeats", "1")
    reproduce("skellam", "--quick", "-o", "out", "--sweeps", "50")
    assert asked == [(1, None), (None, 50)]


def test_fewer_sweeps_than_the_papers():
    """Chains are cut in proportion; shorter ones, and plans without any, stay."""
    cut = runner.at_most(topics_enron.FULL, None, 600)
    assert cut == topics_enron.FULL._replace(sampling=Sampling(1, 200, 50, 8))
    assert runner.at_most(topics_enron.FULL, 1, 7500) == topics_enron.FULL._replace(noise_draws=1)
    assert runner.at_most(topics_enron.FULL, None, 30).naive == Sampling(1, 20, 10)
    assert runner.at_most(skellam.QUICK, None, 5) == skellam.QUICK
