import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

import countveil as cv
from countveil.cli.app import app
from countveil.estimators import TopicModel
from countveil.evaluation import log_score
from countveil.experiments import contenders, demo, reuters
from countveil.experiments.contenders import CONTENDERS, LEAST_SQUARES, OURS, TRUE_COUNTS, Estimate, Sampling
from countveil.experiments.demo import Plan, Watcher, run, score
from countveil.experiments.exhibits import ProgressWatcher, score_table, summary, words_table
from tests.interruption import interrupted

TINY = Sampling(n_topics=4, chains=2, tune=5, draws=5)


@pytest.fixture(scope="module")
def corpus():
    full = reuters.load_reuters()
    return reuters.Corpus(full.counts[:60, :80], full.titles[:60], full.words[:80])


class Silent(Watcher):
    def __init__(self):
        self.heard = []

    def stage(self, name):
        self.heard.append(name)

    def begin(self, total):
        self.total = total

    def started(self, name):
        pass

    def finished(self, name, seconds):
        self.heard.append(name)


@pytest.fixture(scope="module")
def watched(corpus):
    watcher = Silent()
    return run(corpus, Plan(levels=("2", "1"), noise_draws=2, sampling=TINY, threads=2), watcher), watcher


def test_every_contender_on_every_draw(watched):
    study, watcher = watched
    per_release = len(CONTENDERS) - 1
    assert len(study.fits) == 2 + 2 * 2 * per_release == watcher.total
    assert study.fits.groupby(["level", "method"]).size().loc["1"].eq(2).all()
    assert "countveil, epsilon/N = 1, noise draw 2" in watcher.heard
    assert study.shown_level == "1"
    assert study.shown[TRUE_COUNTS].topics.shape == study.shown[OURS.name].topics.shape == (4, 80)


def test_an_interrupted_fit_is_no_result(corpus, monkeypatch):
    monkeypatch.setattr(TopicModel, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(corpus, Plan(levels=("1",), noise_draws=1, sampling=TINY, threads=2), Silent())


def test_scores_are_what_they_should_be(watched, corpus):
    fits = watched[0].fits
    zero = fits[fits["method"] == "zero"].iloc[0]
    assert zero["log_score"] == -np.inf
    assert zero["mae"] == pytest.approx(corpus.counts.mean())
    assert fits.loc[fits["method"] != "zero", "log_score"].between(-10, 0).all()
    with_topics = ~fits["method"].isin(["zero", "column means"])
    assert fits["npmi"].notna().equals(with_topics)
    assert fits.loc[with_topics, ["npmi", "npmi_plain"]].abs().max().max() <= 1


def test_the_noise_is_real_and_differs_between_draws_and_runs(corpus):
    plan = Plan(levels=("1",), noise_draws=1, sampling=TINY._replace(tune=1, draws=1))
    first, second = run(corpus, plan, Silent()).release, run(corpus, plan, Silent()).release
    assert not first.simulated
    assert not np.array_equal(first.reports, second.reports)


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


def test_least_squares_is_given_its_best_floor():
    counts = np.array([[0, 3], [1, 0]])
    rate = np.array([[0.0, 3.0], [0.0, 0.0]])
    estimate = Estimate(rate, None, None, 0.0)
    raised, bare = score(counts, estimate, floored=True), score(counts, estimate, floored=False)
    assert bare["log_score"] == -np.inf
    assert raised["log_score"] == max(
        log_score(counts, np.maximum(rate, floor)) for floor in contenders.FLOORS
    )
    assert raised["mae"] <= bare["mae"]
    assert LEAST_SQUARES.floored
    assert not OURS.floored


def test_least_squares_takes_the_best_of_its_starts(corpus):
    release = cv.privatize(corpus.counts, cv.PrivacyLevel(1, 1))
    found = contenders.least_squares_on_reports(release, TINY, 1)
    again = contenders.least_squares_on_reports(release, TINY, 1)
    assert np.array_equal(found.rate, again.rate)
    assert found.topics.sum(axis=1) == pytest.approx(1.0)
    one = contenders.least_squares_on_reports(release, TINY._replace(chains=1), 1)
    assert not np.array_equal(one.rate, found.rate)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": ()}, "at least one and differ, got none"),
        ({"levels": ("1", "1")}, "at least one and differ, got 1, 1"),
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


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_with_and_without_a_terminal(terminal, capsys):
    with ProgressWatcher(Console(stderr=True, force_terminal=terminal, width=100)) as watcher:
        watcher.stage("privatizing")
        watcher.begin(2)
        watcher.started("ours")
        watcher.finished("ours", 1.25)
    said = capsys.readouterr().err
    assert "privatizing" in said
    assert ("all fits" in said) if terminal else ("[1/2] ours: 1.2 s" in said)


def test_the_command_writes_everything(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(reuters, "load_reuters", lambda: corpus)
    monkeypatch.setattr(demo, "QUICK", Plan(noise_draws=1, sampling=TINY))
    output = tmp_path / "new" / "demo"
    arguments = ["demo", "--quick", "--topics", "3", "--threads", "1", "-o", str(output)]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    assert "countveil ahead of naive on log score at every level" in found.stdout
    assert "3 topics" in found.stdout
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


def test_without_matplotlib_the_error_says_what_to_install(watched, tmp_path, monkeypatch):
    from countveil.experiments.figure import save_figure

    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'countveil\[plots\]'"):
        save_figure(watched[0].fits, tmp_path / "scores.png")
