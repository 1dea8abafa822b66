import re
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

import countveil as cv
from countveil.cli.app import app
from countveil.experiments import corpora, demo
from countveil.experiments.demo import (
    Plan,
    compressed,
    expanded,
    run,
    save_figure,
    save_heatmaps,
    score,
    score_table,
    summary,
    verdicts,
    words_table,
)
from countveil.fit import TopicModel
from countveil.planning.contenders import CONTENDERS, OURS, TRUE_COUNTS, Estimate
from tests.experiments.conftest import TINY
from tests.interruption import interrupted
from tests.silent import Silent


@pytest.mark.long
def test_every_contender_on_every_draw(watched):
    study, watcher = watched
    per_release = len(CONTENDERS) - 1
    assert len(study.fits) == 2 + 2 * 2 * per_release == watcher.total
    assert study.fits.groupby(["level", "method"]).size().loc["1"].eq(2).all()
    assert "countveil, epsilon/N = 1, noise draw 2" in watcher.heard
    assert study.shown_level == "1"
    assert study.shown[TRUE_COUNTS].topics.shape == study.shown[OURS.name].topics.shape == (4, 80)


@pytest.mark.long
def test_longer_chains_are_for_what_is_printed(watched):
    study, _ = watched
    draws = study.printed.posterior["posterior"].sizes
    assert (draws["chain"], draws["draw"], study.printed.tune) == (2, 32, 24)
    assert (study.printed_level, study.printed.n_topics) == ("1", 4)
    assert (study.printed.likelihood, study.printed.prior_shape) == (None, None)  # the defaults


@pytest.mark.long
def test_an_interrupted_fit_is_no_result(corpus, monkeypatch):
    monkeypatch.setattr(TopicModel, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(corpus, Plan(levels=("1",), noise_draws=1, sampling=TINY, threads=2), Silent())


@pytest.mark.long
def test_scores_are_what_they_should_be(watched, corpus):
    fits = watched[0].fits
    zero = fits[fits["method"] == "zero"].iloc[0]
    assert zero["log_score"] == -np.inf
    assert zero["mae"] == pytest.approx(corpus.counts.mean())
    assert fits.loc[fits["method"] != "zero", "log_score"].between(-10, 0).all()
    with_topics = ~fits["method"].isin(["zero", "column means"])
    assert fits["npmi"].notna().equals(with_topics)
    assert fits.loc[with_topics, ["npmi", "npmi_plain"]].abs().max().max() <= 1


@pytest.mark.long
def test_the_noise_is_real_and_differs_between_draws_and_runs(corpus):
    plan = Plan(levels=("1",), noise_draws=1, sampling=TINY._replace(tune=1, draws=1))
    first, second = run(corpus, plan, Silent()).release, run(corpus, plan, Silent()).release
    assert not first.simulated
    assert not np.array_equal(first.reports, second.reports)


@pytest.mark.long
def test_the_analyst_sees_the_release_alone(monkeypatch, corpus):
    """True counts reach the reference and the scores, and nobody else."""
    seen = []

    def record(release, sampling, seed):
        seen.append(release)
        return Estimate(np.ones(release.shape), None, None, 0.0)

    spies = [contender._replace(estimate=record) for contender in CONTENDERS]
    monkeypatch.setattr(demo, "CONTENDERS", spies)
    monkeypatch.setattr(demo, "ZERO", spies[-1])
    run(corpus, Plan(levels=("1",), noise_draws=1, sampling=TINY), Silent())
    assert seen
    assert all(isinstance(data, cv.Release) for data in seen)


@pytest.mark.long
def test_rates_are_raised_to_a_floor_only_where_they_can_fall_to_zero():
    counts, estimate = (np.array([[0, 3], [1, 0]]), Estimate(np.array([[0.0, 3.0], [0.0, 0.0]]), None, None, 0.0))
    assert score(counts, estimate, floored=False)["log_score"] == -np.inf
    assert np.isfinite(score(counts, estimate, floored=True)["log_score"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": ()}, "one or more, all different, got none"),
        ({"levels": ("1", "1")}, "one or more, all different, got 1, 1"),
        ({"levels": ("0",)}, r"levels must be positive numbers \(epsilon/N\), got '0'"),
        ({"noise_draws": 0}, "noise_draws must be at least 1, got 0"),
    ],
)
def test_plans_that_are_refused(corpus, changes, message):
    with pytest.raises(ValueError, match=message):
        run(corpus, Plan(sampling=TINY)._replace(**changes), Silent())


def test_summary_over_draws():
    rows = [("1", 1, "naive", -2.0, 0.5, 0.1, 0.2, 1.0), ("1", 2, "naive", -3.0, 0.7, 0.3, 0.2, 1.0)]
    columns = ["level", "draw", "method", "log_score", "mae", "npmi", "npmi_plain", "seconds"]
    found = summary(pd.DataFrame(rows, columns=columns)).iloc[0]
    assert found["draws"] == 2
    assert found["log_score_mean"] == -2.5
    assert found["mae_sd"] == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert (found["npmi_min"], found["npmi_max"]) == (0.1, 0.3)


def printed(renderable, width=110):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(renderable)
        return console.export_text()


def test_tables_as_they_are_printed(watched, corpus):
    study = watched[0]
    text = printed(score_table(study.fits))
    ours = summary(study.fits).query("method == 'countveil' and level == '2'").iloc[0]
    assert f"{ours['mae_mean']:.3f}±{ours['mae_sd']:.3f}" in text
    assert "-inf" in text
    assert "standard deviation over 2 noise draws" in text
    words = printed(words_table(study, corpus))
    assert "fit of the true counts" in words
    assert sum(word in words for word in corpus.words) > 8


def test_the_table_fits_a_terminal_of_100_columns(watched):
    lines = printed(score_table(watched[0].fits), width=100).splitlines()
    assert any("true counts" in line and line.count(".") >= 4 for line in lines)


GOOD = {"ours": (-2.0, 0.1, 0.30), "naive": (-3.0, 0.3, 0.10), "rival": (-2.5, 0.2, 0.30)}


def made_up(changes=None, levels=("1", "2"), draws=3, wobble=0.01):
    """Fits whose metrics are those of GOOD, with a small spread; changes: {(level, method): metrics}."""
    rows = []
    for level in levels:
        for method, usual in GOOD.items():
            log_score, mae, npmi = (changes or {}).get((level, method), usual)
            for draw in range(1, draws + 1):
                shift = wobble * (draw - (draws + 1) / 2)
                rows.append((level, draw, method, log_score + shift, mae + shift, npmi + shift))
    rows.append(("none", 0, "truth", -1.0, 0.05, 0.4))
    return pd.DataFrame(rows, columns=["level", "draw", "method", "log_score", "mae", "npmi"])


def answers(fits):
    return [verdict.holds for verdict in verdicts(fits, "ours", "naive", "rival")]


def test_all_hold_when_ours_is_better_everywhere():
    found = verdicts(made_up(), "ours", "naive", "rival")
    assert [verdict.holds for verdict in found] == [True] * 6
    assert found[0].claim == "ours ahead of naive on log score at every level"
    assert found[0].numbers == "1: -2.000 against -3.000 (3 of 3); 2: -2.000 against -3.000 (3 of 3)"
    assert found[1].numbers.startswith("1: 0.100 against 0.300 (3 of 3)")


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({("2", "naive"): (-1.9, 0.3, 0.1)}, [0]),
        ({("2", "naive"): (-3.0, 0.09, 0.1)}, [1]),
        ({("1", "naive"): (-3.0, 0.3, 0.31)}, [2]),
        ({("1", "rival"): (-1.5, 0.2, 0.3)}, [3]),
        ({("2", "rival"): (-2.5, 0.05, 0.3)}, [4]),
        ({("2", "rival"): (-2.5, 0.2, 0.35)}, [5]),
        ({("1", "ours"): (-4.0, 0.9, 0.0)}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_one_worse_level_makes_the_claim_fail(changes, failing):
    fits = made_up(changes)
    assert [i for i, holds in enumerate(answers(fits)) if not holds] == failing
    for i in failing:
        assert " NO" in verdicts(fits, "ours", "naive", "rival")[i].numbers


def test_a_tie_is_not_ahead():
    tied = made_up({(level, "naive"): GOOD["ours"] for level in "12"})
    assert answers(tied)[:3] == [False, False, False]


def test_not_behind_allows_for_the_spread_of_the_draws_only():
    """Sample deviations of 0.01 each allow a gap up to 0.0141."""
    assert answers(made_up({("1", "rival"): (-2.5, 0.2, 0.314)}))[5]
    assert not answers(made_up({("1", "rival"): (-2.5, 0.2, 0.315)}))[5]


def test_one_draw_has_no_spread():
    assert answers(made_up(draws=1))[5]
    assert not answers(made_up({("1", "rival"): (-2.5, 0.2, 0.301)}, draws=1))[5]


def test_draws_are_paired_by_number_whatever_the_order_of_the_rows():
    fits = made_up().sample(frac=1.0, random_state=1).sort_values("level", kind="stable")
    assert answers(fits) == [True] * 6


def test_without_our_fits_nothing_holds():
    fits = made_up()
    assert not any(answers(fits[fits["method"] != "ours"]))


def test_without_matplotlib_the_error_says_what_to_install(watched, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[plots\]'"):
        save_figure(watched[0].fits, tmp_path / "scores.png")


def test_the_colour_scale_can_be_undone():
    counts = np.array([0.0, 0.1, 1.0, 30.0])
    np.testing.assert_allclose(expanded(compressed(counts)), counts, rtol=1e-12)


def test_one_panel_for_each_matrix(tmp_path):
    panels = {"one": np.eye(3), "other": 2.0 * np.eye(3)}
    save_heatmaps(panels, ["ann", "bob", "cy"], 2.0, tmp_path / "found.png")
    with Image.open(tmp_path / "found.png") as image:
        assert image.size == (1950, 615)


@pytest.mark.long
def test_the_command_writes_everything(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "load_reuters", lambda: corpus)
    monkeypatch.setattr(demo, "QUICK", Plan(noise_draws=1, sampling=TINY))
    output = tmp_path / "new" / "demo"
    arguments = ["demo", "--quick", "--topics", "3", "--threads", "1", "-o", str(output)]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    assert "countveil ahead of naive on log score at every level" in found.stdout
    assert "3 topics" in found.stdout
    assert "Topics at epsilon/N = 2 to be printed: shares of words in %, 90% intervals" in found.stdout
    assert re.search(r"\w+ \d+\.\d \(\d+\.\d to \d+\.\d\)", found.stdout)
    assert re.search("Safe to report|Not safe yet|not checked", found.stdout)
    assert "[26/26]" not in found.stdout  # progress goes to stderr
    assert "countveil, epsilon/N = 3, noise draw 1" in found.stderr
    assert sorted(path.name for path in output.iterdir()) == [
        "fits.csv", "release.npz", "scores.csv", "scores.png",
    ]  # fmt: skip
    release = cv.Release.load(output / "release.npz")
    assert release.column_labels == tuple(corpus.words)
    assert release.row_labels == tuple(corpus.titles)
    assert float(release.epsilon / release.precision) == 1.0
    scores, fits = pd.read_csv(output / "scores.csv"), pd.read_csv(output / "fits.csv")
    assert set(scores["method"]) == {TRUE_COUNTS, *(contender.name for contender in CONTENDERS)}
    assert len(fits) == 2 + 3 * 4
    assert (output / "scores.png").read_bytes().startswith(b"\x89PNG")
