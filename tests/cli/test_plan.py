from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from countveil.planning import truths
from tests.commands import ASKED, fails, run

pytestmark = pytest.mark.long

SMALL = ["--topics", "2", "--replicates", "2", "--threads", "1", "-o", "out"]


def short(monkeypatch):
    """Chains of few sweeps: what is asked here is what a plan does with its fits."""
    for settings in (import_module("countveil.planning.simulate").SETTINGS, truths.PILOT_FIT):
        monkeypatch.setitem(settings, "tune", 5)
        monkeypatch.setitem(settings, "draws", 5)


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are empty files: drawing one takes three times as long as a small plan."""

    def empty(found, targets, paths):
        for path in paths.values():
            path.touch()

    monkeypatch.setattr("countveil.planning.answers.save_figure", empty)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a pilot and a study of its four words in it, and fits that are short."""
    short(monkeypatch)
    (tmp_path / "word.txt").write_text("surprise\nparty\nfive\ntimes\n")
    sp.save_npz(tmp_path / "pilot.npz", sp.csr_array(np.random.default_rng(1).poisson(3.0, (12, 4))))
    monkeypatch.chdir(tmp_path)
    run("study", "new", "word.txt", "-o", "s.json", *ASKED)
    return tmp_path


def test_a_study_without_a_pilot(here):
    said = run("plan", "--study", "s.json", "--total", "20", "--rows", "10", "--rows", "20", *SMALL,
               "--target", "mae:0.01").stdout  # fmt: skip
    assert "drawn from the model's prior: 2 topics over 4 words, rows of 20 on average" in said
    assert "Nothing here is a release." in " ".join(said.split())
    assert "10:1, 20 rows: NAIVE MISLEADS" in said
    assert "How many participants for mae 0.01?" in said
    assert "10:1: not reached with 20 participants" in said
    table = pd.read_csv("out/plan.csv")
    assert set(table["level"]) == {"no noise", "10:1"}
    assert len(pd.read_csv("out/fits.csv")) == 24
    assert (here / "out" / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (here / "out" / "plan.svg").read_text()


def test_the_same_seed_draws_the_same_figure_and_table(here):
    asked = ["plan", "pilot.npz", "--method", "em", "--rows", "6", "--level", "1:1"]
    run(*asked, *SMALL)
    first = {name: (here / "out" / name).read_bytes() for name in ("plan.svg", "plan.png")}
    run(*asked, *SMALL)
    assert {name: (here / "out" / name).read_bytes() for name in first} == first


@pytest.mark.usefixtures("undrawn")
def test_a_pilot_by_its_model_or_its_own_rows(here):
    said = run("plan", "pilot.npz", "--study", "s.json", "--method", "em", *SMALL).stdout
    assert "from a model with 2 topics of the pilot's 12 rows x 4 words" in said
    assert pd.read_csv("out/plan.csv")["rows"].unique().tolist() == [6, 12, 24]
    said = run("plan", "pilot.npz", "--truth", "pilot", "--rows", "12", "--level", "1:2", *SMALL).stdout
    assert "the pilot's own 12 rows x 4 words under simulated noise" in said
    assert pd.read_csv("out/plan.csv")["mae_of_rates"].isna().all()


@pytest.mark.usefixtures("undrawn")
def test_counts_may_come_in_bursts(here):
    bursty = ["--likelihood", "negative-binomial"]
    said = run("plan", "--words", "5", "--rows", "8", "--level", "1:2", *bursty, "--dispersion", "0.7", *SMALL).stdout
    assert "rows of 100 on average, overdispersed with p = 0.7" in " ".join(said.split())
    for more in ([], ["--truth", "pilot", "--dispersion", "0.5"]):
        said = run("plan", "pilot.npz", "--rows", "8", "--level", "1:2", *bursty, *more, *SMALL).stdout
        dispersion = more[-1] if more else "column"  # the default
        assert f"in bursts (negative-binomial, dispersion {dispersion})" in " ".join(said.split())
        assert pd.read_csv("out/plan.csv")["coverage"].notna().any() == ("pilot" not in more)
    asked = ["plan", "--words", "5", *SMALL]
    assert "dispersion must be a number if there is no pilot, got None" in fails(*asked, *bursty)
    assert "dispersion must be a number if there is no pilot, got 'row'" in fails(
        *asked, *bursty, "--dispersion", "row"
    )
    assert "dispersion requires likelihood 'negative-binomial', got 'poisson'" in fails(*asked, "--dispersion", "1")
    assert "likelihood must be one of" in fails("plan", "pilot.npz", "--likelihood", "normal", *SMALL)


def test_what_cannot_be_planned_is_refused_in_one_line(here):
    assert "give the words exactly once, by a pilot, --study or --words, got" in fails("plan", *SMALL)
    assert "--study or --words, got 5" in fails("plan", "--study", "s.json", "--words", "5", *SMALL)
    assert "leave out --words and --total with a pilot" in fails("plan", "pilot.npz", "--total", "3", *SMALL)
    assert "truth 'pilot' needs a pilot" in fails("plan", "--words", "5", "--truth", "pilot", *SMALL)
    assert "truth must be one of model, pilot, got 'me'" in fails("plan", "--words", "5", "--truth", "me", *SMALL)
    assert "method must be gibbs or em, got 'cavi'" in fails("plan", "--words", "5", "--method", "cavi", *SMALL)
    assert "target must be MEASURE:VALUE" in fails("plan", "--words", "5", "--target", "good", *SMALL)
    assert "level must be N:EPSILON" in fails("plan", "--words", "5", "--level", "1", *SMALL)
    assert "no counts at none.npz" in fails("plan", "none.npz", *SMALL)
    sp.save_npz("other.npz", sp.csr_array(np.ones((3, 5), dtype=int)))
    assert "must have the study's 4 columns, got 5" in fails("plan", "other.npz", "--study", "s.json", *SMALL)
    run("study", "new", "word.txt", "word.txt", "-o", "two.json", *ASKED, "--categories")
    assert "must have one axis of counts, got 2" in fails("plan", "--study", "two.json", *SMALL)
    np.save("zero.npy", np.zeros((3, 4), dtype=int))
    assert "a pilot must hold a count above zero" in fails("plan", "zero.npy", *SMALL)
    assert not (here / "out").exists()
    assert "word.txt must be a directory" in fails("plan", "pilot.npz", *SMALL, "-o", "word.txt")


@pytest.mark.usefixtures("undrawn")
def test_a_study_of_rho_and_mechanisms_are_planned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short(monkeypatch)
    (tmp_path / "word.txt").write_text("surprise\nparty\nfive\n")
    about = ("--title", "T", "--purpose", "P", "--contact", "c@d.org")
    run("study", "new", "word.txt", "-o", "s.json", *about, "--level", "rho:0.125", "--signed")
    asked = ("plan", "--study", "s.json", "--total", "60", "--rows", "6", "--method", "em", *SMALL)
    assert "rho:0.125" in run(*asked).stdout
    assert set(pd.read_csv("out/plan.csv")["level"]) == {"no noise", "rho:0.125"}
    hidden = ("--mechanism", "suppression", "--below", "10")
    said = run(*asked, *hidden, "--level", "rho:2", "--level", "1:1").stdout
    assert "suppression of 1 to 9, 6 rows: " in said
    table = pd.read_csv("out/plan.csv")
    assert table["level"].unique().tolist() == ["no noise", "rho:2", "1:1", "suppression of 1 to 9"]
    assert set(pd.read_csv("out/fits.csv")["method"]) >= {"countveil", "naive", "least squares"}
    assert "suppression of 1 to 9" in run(*asked, *hidden).stdout
    assert "--mechanism suppression must come with --below" in fails(*asked, *hidden[:2])
    assert "--hides-zero must come with" in fails(*asked, "--mechanism", "rounding", "--base", "5", "--hides-zero")
    assert "level must be N:EPSILON, such as 10:1, or rho:RHO" in fails(*asked, "--level", "rho")
