"""The demo: a real corpus under exact noise, fitted from the noisy reports alone, beside its rivals.

For every level epsilon/N and every draw of the noise, each contender sees one release; what it makes of it is
scored against the true counts, which nothing else looks at. The noise is the real mechanism's, from the
operating system's entropy, so it differs in every run: the seed governs the samplers alone.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text
from sklearn.exceptions import ConvergenceWarning

from countveil.common.console import ProgressWatcher, Watcher, console, error_console
from countveil.common.files import write_csv
from countveil.engines.threads import one_blas_thread
from countveil.evaluation import match_topics, npmi, npmi_by_topic, relevant_words
from countveil.experiments import corpora
from countveil.experiments.corpora import Corpus
from countveil.fit import TopicModel
from countveil.inference.diagnostics import FitWarning
from countveil.planning.contenders import (
    COLUMN_MEANS,
    CONTENDERS,
    LEAST_SQUARES,
    NAIVE,
    OURS,
    TRUE_COUNTS,
    ZERO,
    Estimate,
    Sampling,
    all_zero,
    on_true_counts,
    ours,
    rate_scores,
)
from countveil.plotting.style import HEAT, METHODS, legend_below, new_figure, tidy
from countveil.privacy import PrivacyLevel, Release, privatize
from countveil.privacy._archive import replacing

N_TOP_WORDS = 10
LONGER = 8  # times the sweeps of the fits that are scored, for one that can be printed
MORE = 2  # times their chains, which averages over them need to be steady
NO_NOISE = "none"


class Plan(NamedTuple):
    """What to run: levels epsilon/N as decimal text, noise draws per level, and how to sample."""

    levels: tuple[str, ...] = ("1", "2", "3")
    noise_draws: int = 5
    sampling: Sampling = Sampling()
    seed: int = 1
    threads: int = 1


QUICK = Plan(noise_draws=2)


class Job(NamedTuple):
    """One fit to make."""

    level: str
    draw: int  # from 1; 0 where there is no noise
    method: str
    estimate: Callable[[], Estimate]
    floored: bool

    @property
    def name(self) -> str:
        """What a person reads while it runs."""
        if self.level == NO_NOISE:
            return self.method
        return f"{self.method}, epsilon/N = {self.level}, noise draw {self.draw}"


class Study(NamedTuple):
    """What the demo found."""

    fits: pd.DataFrame  # one row per fit: level, draw, method, and the scores
    shown: dict[str, Estimate]  # by method: the reference, and the first noise draw at shown_level
    shown_level: str
    release: Release  # that draw
    printed: TopicModel  # of the first noise draw at printed_level
    printed_level: str


def run(corpus: Corpus, plan: Plan, watcher: Watcher) -> Study:
    """Privatize, fit and score everything in the plan, and fit one release by chains that are long enough to print.

    Raises:
        ValueError: no level, one that is not a positive number or comes twice, or fewer than one noise draw.
    """
    _check(plan)
    watcher.stage("privatizing the corpus")
    releases = {(level, draw): _privatized(corpus, level) for level in plan.levels for draw in _draws(plan)}
    shown = "1" if "1" in plan.levels else plan.levels[0]
    kept: dict[str, Estimate] = {}

    def make(job: Job) -> dict[str, object]:
        watcher.started(job.name)
        estimate = job.estimate()
        watcher.finished(job.name, estimate.seconds)
        if (job.level, job.draw) in {(NO_NOISE, 0), (shown, 1)}:
            kept[job.method] = estimate
        scores = score(corpus.counts, estimate, job.floored)
        return {"level": job.level, "draw": job.draw, "method": job.method, **scores}

    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", FitWarning)  # the verdict says what can be printed
        warnings.simplefilter("ignore", ConvergenceWarning)  # short chains by design; the scores judge them
        watcher.stage("compiling (once; kept for the next run)")
        some = releases[shown, 1]
        few = Release(np.asarray(some.reports)[:8], some.mechanism, some.truncated)
        ours(few, plan.sampling._replace(tune=1, draws=1), 0)
        jobs = _jobs(corpus, plan, releases)
        watcher.begin(len(jobs))
        with ThreadPoolExecutor(plan.threads) as pool:
            futures = [pool.submit(make, job) for job in jobs]
            try:
                rows = [future.result() for future in futures]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        level = plan.levels[len(plan.levels) // 2]
        watcher.stage(f"longer chains at epsilon/N = {level}, to be printed")
        printed = to_print(releases[level, 1], plan)
    return Study(pd.DataFrame(rows), kept, shown, releases[shown, 1], printed, level)


def to_print(release: Release, plan: Plan) -> TopicModel:
    """A fit of chains that are long enough for intervals, and enough of them."""
    sampling = plan.sampling
    return TopicModel(
        sampling.n_topics, chains=MORE * sampling.chains, tune=LONGER * sampling.tune, draws=LONGER * sampling.draws,
        seed=plan.seed, threads=plan.threads, progress=False,
    ).fit(release)  # fmt: skip


def score(counts: np.ndarray, estimate: Estimate, floored: bool) -> dict[str, float]:
    """``rate_scores``, NPMI of the ten top words on the true corpus, and seconds.

    Top words are the most relevant ones; ``npmi_plain`` takes the most probable ones instead.
    """
    relevant = top_words(estimate)
    plain = None if estimate.topics is None else _most_probable(estimate.topics)
    return {
        **rate_scores(counts, estimate.rate, floored),
        "npmi": float("nan") if relevant is None else npmi(relevant, counts),
        "npmi_plain": float("nan") if plain is None else npmi(plain, counts),
        "seconds": estimate.seconds,
    }


def top_words(estimate: Estimate) -> np.ndarray | None:
    """(K, 10) columns of each topic's most relevant words, by its typical probabilities."""
    if estimate.typical is None:
        return None
    return relevant_words(estimate.typical, estimate.rate.sum(axis=0), N_TOP_WORDS)


def _most_probable(topics: np.ndarray) -> np.ndarray:
    return np.argsort(-topics, axis=1, kind="stable")[:, :N_TOP_WORDS]


def _jobs(corpus: Corpus, plan: Plan, releases: dict[tuple[str, int], Release]) -> list[Job]:
    """The reference, the zero predictor, then every other contender on every release."""
    n_seeds = 1 + len(releases) * len(CONTENDERS)
    seeds = iter(np.random.SeedSequence(plan.seed).generate_state(n_seeds))
    first = int(next(seeds))
    jobs = [
        Job(NO_NOISE, 0, TRUE_COUNTS, lambda: on_true_counts(corpus.counts, plan.sampling, first), False),
        Job(NO_NOISE, 0, ZERO.name, lambda: all_zero(next(iter(releases.values())), plan.sampling, 0), False),
    ]
    for (level, draw), release in releases.items():
        for contender in CONTENDERS:
            if contender is ZERO:
                continue
            estimate = partial(contender.estimate, release, plan.sampling, int(next(seeds)))
            jobs.append(Job(level, draw, contender.name, estimate, contender.floored))
    return jobs


def _privatized(corpus: Corpus, level: str) -> Release:
    return privatize(corpus.counts, PrivacyLevel(level, 1), row_labels=corpus.titles, column_labels=corpus.words)


def _draws(plan: Plan) -> range:
    return range(1, plan.noise_draws + 1)


def _check(plan: Plan) -> None:
    if not plan.levels or len(set(plan.levels)) < len(plan.levels):
        raise ValueError(f"levels must be one or more, all different, got {', '.join(plan.levels) or 'none'}")
    for level in plan.levels:
        try:
            PrivacyLevel(level, 1)
        except (ValueError, TypeError) as error:
            raise ValueError(f"levels must be positive numbers (epsilon/N), got {level!r}") from error
    if plan.noise_draws < 1:
        raise ValueError(f"noise_draws must be at least 1, got {plan.noise_draws}")


# What the demo shows: its table, the top words side by side, and its verdicts.

HIGHER_IS_BETTER = {"log_score": True, "mae": False, "npmi": True}
TITLES = {"log_score": "log score", "mae": "MAE", "npmi": "NPMI of relevant words"}


class Verdict(NamedTuple):
    """A claim, whether it holds, and its numbers level by level."""

    claim: str
    holds: bool
    numbers: str


def verdicts(fits: pd.DataFrame, ours: str, naive: str, rival: str) -> list[Verdict]:
    """Ours against the naive way and against the strong rival, on every metric and at every level.

    fits has one row per fit: level, draw, method and the metrics. Ahead means a better mean over the noise
    draws. On NPMI ours need not be ahead of the rival, but must not be behind it by more than the spread of
    the draws: by more than sqrt(sd_ours^2 + sd_rival^2), sample standard deviations over the draws.
    """
    found = [_compare(fits, ours, naive, metric, _ahead, "ahead of") for metric in HIGHER_IS_BETTER]
    found += [_compare(fits, ours, rival, metric, _ahead, "ahead of") for metric in ("log_score", "mae")]
    found.append(_compare(fits, ours, rival, "npmi", _not_behind, "not behind"))
    return found


def _compare(
    fits: pd.DataFrame, ours: str, other: str, metric: str, rule: Callable[[np.ndarray, np.ndarray], bool], words: str
) -> Verdict:
    holds, parts = [], []
    for level in fits.loc[fits["method"] == ours, "level"].unique():
        mine, theirs = (_signed(fits, level, method, metric) for method in (ours, other))
        holds.append(rule(mine, theirs))
        sign = 1.0 if HIGHER_IS_BETTER[metric] else -1.0
        means = [sign * values.mean() for values in (mine, theirs)]
        parts.append(
            f"{level}: {means[0]:.3f} against {means[1]:.3f} ({int((mine > theirs).sum())} of {len(mine)})"
            + ("" if holds[-1] else " NO")
        )
    claim = f"{ours} {words} {other} on {TITLES[metric]} at every level"
    return Verdict(claim, bool(holds) and all(holds), "; ".join(parts))


def _signed(fits: pd.DataFrame, level: str, method: str, metric: str) -> np.ndarray:
    """A metric's values over the noise draws, in the draws' order, with their sign such that higher is better."""
    chosen = fits[(fits["level"] == level) & (fits["method"] == method)].sort_values("draw")
    values = chosen[metric].to_numpy(dtype=np.float64)
    return values if HIGHER_IS_BETTER[metric] else -values


def _ahead(mine: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(mine.mean() > theirs.mean())


def _not_behind(mine: np.ndarray, theirs: np.ndarray) -> bool:
    spread = 0.0 if len(mine) < 2 else np.hypot(mine.std(ddof=1), theirs.std(ddof=1))
    return bool(mine.mean() >= theirs.mean() - spread)


METRICS = {"log_score": "{:.3f}", "mae": "{:.3f}", "npmi": "{:.3f}", "npmi_plain": "{:.3f}", "seconds": "{:.1f}"}
HEADINGS = {
    "log_score": "log score\nper word\n(higher)",
    "mae": "MAE\n\n(lower)",
    "npmi": "NPMI,\nrelevant\nwords (higher)",
    "npmi_plain": "NPMI,\nprobable\nwords (higher)",
    "seconds": "seconds\n\n(1 core)",
}
ORDER = [TRUE_COUNTS, ZERO.name, *(contender.name for contender in CONTENDERS if contender is not ZERO)]
N_TOPICS_SHOWN = 6
N_WORDS_SHOWN = 7
N_WORDS_PRINTED = 4


def summary(fits: pd.DataFrame) -> pd.DataFrame:
    """Mean, sample standard deviation (NaN for one draw), least and largest of every metric over noise draws.

    One row per level and method, in the order of the table; columns level, method, draws, metric_statistic.
    """
    rows = []
    for level in fits["level"].unique():
        for method in ORDER:
            chosen = fits[(fits["level"] == level) & (fits["method"] == method)]
            if chosen.empty:
                continue
            row: dict[str, object] = {"level": level, "method": method, "draws": len(chosen)}
            for metric in METRICS:
                values = chosen[metric]
                row |= {
                    f"{metric}_mean": values.mean(),
                    f"{metric}_sd": np.nan if len(values) < 2 else values.std(ddof=1),
                    f"{metric}_min": values.min(),
                    f"{metric}_max": values.max(),
                }
            rows.append(row)
    return pd.DataFrame(rows)


def score_table(fits: pd.DataFrame) -> Table:
    """Rows: methods by level. Cells: mean and standard deviation over noise draws; a level's best in bold."""
    found = summary(fits)
    draws = int(found["draws"].max())
    title = f"Against the true counts: mean±standard deviation over {draws} noise draws"
    table = Table(title=title, title_justify="left", header_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("epsilon/N", justify="right")
    table.add_column("method", no_wrap=True)
    for metric in METRICS:
        table.add_column(HEADINGS[metric], justify="right", no_wrap=True)
    for level, group in found.groupby("level", sort=False):
        for place, (_, row) in enumerate(group.iterrows()):
            cells = [
                Text(_cell(row, metric), style="bold" if _is_best(group, row, metric) else "") for metric in METRICS
            ]
            label = "" if place else "no noise" if level == NO_NOISE else str(level)
            table.add_row(label, str(row["method"]), *cells, end_section=place == len(group) - 1)
    return table


def words_table(study: Study, corpus: Corpus) -> Table:
    """Top words of a few topics: true counts, naive, ours; words that the true topic has too in bold green.

    The topics shown are those whose words are the most coherent in the fit of the true counts, and the others
    are matched to that fit, all topics at once.
    """
    tops = {method: _matched(study, method) for method in (TRUE_COUNTS, NAIVE.name, OURS.name)}
    chosen = np.argsort(-npmi_by_topic(tops[TRUE_COUNTS], corpus.counts), kind="stable")[:N_TOPICS_SHOWN]
    table = Table(
        title=f"Top words at epsilon/N = {study.shown_level}, first noise draw (bold: in the true topic's ten)",
        title_justify="left", header_style="", show_lines=True,
    )  # fmt: skip
    for heading in ("fit of the true counts", "naive, noisy reports", f"{OURS.name}, the same noisy reports"):
        table.add_column(heading, ratio=1)
    for k in chosen:
        true = set(tops[TRUE_COUNTS][k].tolist())
        table.add_row(*(_words(tops[method][k], true, corpus.words, method) for method in tops))
    return table


def topics_table(study: Study) -> Table:
    """Of longer chains, the best supported topics: share, support, and words with 90% intervals, all in %."""
    found = study.printed.topics(N_WORDS_PRINTED)
    table = Table(
        title=f"Topics at epsilon/N = {study.printed_level} to be printed: shares of words in %, 90% intervals",
        title_justify="left", header_style="",
    )  # fmt: skip
    for heading in ("support", "share", "words"):
        table.add_column(heading, justify="left" if heading == "words" else "right")
    for _, rows in [*found.groupby("topic", sort=False)][:N_TOPICS_SHOWN]:
        words = ", ".join(
            f"{row.word} {100 * row.probability:.1f} ({100 * row.lower:.1f} to {100 * row.upper:.1f})"
            for row in rows.itertuples()
        )
        table.add_row(_percent(rows["support"].iloc[0]), _percent(rows["prevalence"].iloc[0]), Text(words))
    return table


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.0%}"


def _matched(study: Study, method: str) -> np.ndarray:
    """(K, 10) top words of a method, its topics in the order of the true fit's."""
    reference, estimate = study.shown[TRUE_COUNTS].topics, study.shown[method]
    words = top_words(estimate)
    if reference is None or estimate.topics is None or words is None:
        raise ValueError(f"method must have topics, got {method!r}")
    return words[match_topics(reference, estimate.topics)]


def verdict_lines(found: list[Verdict]) -> Text:
    """Each claim with its answer, and the numbers behind it."""
    text = Text(
        "From the numbers above, at each epsilon/N: means, and in how many noise draws the first is the better. "
        "Not behind: by no more than the spread of the draws.\n"
    )
    for verdict in found:
        answer, style = ("yes  ", "bold green") if verdict.holds else ("NO   ", "bold red")
        text.append(answer, style=style)
        text.append(f"{verdict.claim}\n")
        text.append(f"     {verdict.numbers}\n", style="dim")
    return text


def notes() -> str:
    """What a reader of the table has to know."""
    return (
        "Predicting zero everywhere wins on MAE against most fits, because nearly all true counts are zero: read "
        f"the log score beside it. Rates of {LEAST_SQUARES.name} and {COLUMN_MEANS.name} are raised to a floor "
        "chosen with the true counts, the best for each score. Top words are each topic's ten most relevant "
        "(probability against how common the word is, Sievert and Shirley's weight of 0.6), or its ten most "
        "probable. The noise is real and differs in every run."
    )


def _cell(row: pd.Series, metric: str) -> str:
    mean, spread, form = row[f"{metric}_mean"], row[f"{metric}_sd"], METRICS[metric]
    if np.isnan(mean):
        return "-"
    if np.isnan(spread) or not np.isfinite(mean) or metric == "seconds":
        return form.format(mean)
    return f"{form.format(mean)}±{form.format(spread)}"


def _is_best(group: pd.DataFrame, row: pd.Series, metric: str) -> bool:
    """Whether a row is the best of its level's methods; rows without noise are never marked."""
    if metric == "seconds" or row["level"] == NO_NOISE:
        return False
    values = group[f"{metric}_mean"]
    return bool(row[f"{metric}_mean"] == (values.min() if metric == "mae" else values.max()))


def _words(columns: np.ndarray, true: set[int], words: list[str], method: str) -> Text:
    text = Text()
    for place, v in enumerate(columns[:N_WORDS_SHOWN].tolist()):
        shared = v in true and method != TRUE_COUNTS
        text.append(" " if place else "")
        text.append(words[v], style="bold green" if shared else "")
    return text


# The demos' figures: every metric against epsilon/N with its spread over noise draws, and matrices as heat maps.

PANELS = {
    "log_score": "log score per word\n(higher is better)",
    "mae": "mean absolute error\n(lower is better)",
    "npmi": "NPMI of the 10 most relevant words\n(higher is better)",
}


def save_figure(fits: pd.DataFrame, path: Path) -> None:
    """Write the figure as a PNG; least to largest of the noise draws as bars.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    figure, found = new_figure(11.0, 4.2), summary(fits)
    for axes, (metric, label) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        _panel(axes, found, metric)
        axes.set_ylabel(label)
        axes.set_xlabel("epsilon/N (more noise to the left)")
        tidy(axes)
    legend_below(figure)
    draws = int(found["draws"].max())
    figure.suptitle(
        f"What is recovered of the true counts; bars span {draws} noise draws" if draws > 1
        else "What is recovered of the true counts; one noise draw",
        fontsize=11,
    )  # fmt: skip
    figure.savefig(path, dpi=150, format="png")


def _panel(axes: Any, found: pd.DataFrame, metric: str) -> None:
    levels = [level for level in found["level"].unique() if level != NO_NOISE]
    order = sorted(levels, key=float)
    ticks = np.arange(len(order), dtype=float)
    for place, (method, (colour, marker, line)) in enumerate(METHODS.items()):
        rows = found[found["method"] == method].set_index("level").reindex(order)
        mean = rows[f"{metric}_mean"].to_numpy()
        if np.isnan(mean).all():
            continue
        ends = np.abs(np.stack([rows[f"{metric}_min"], rows[f"{metric}_max"]]) - mean)
        axes.errorbar(
            ticks + 0.05 * (place - 1.5), mean, yerr=ends, color=colour, marker=marker, linestyle=line,
            capsize=3, markersize=6, linewidth=1.6, label=method,
        )  # fmt: skip
    for method, line in ((TRUE_COUNTS, "--"), (ZERO.name, ":")):
        value = found.loc[(found["method"] == method) & (found["level"] == NO_NOISE), f"{metric}_mean"]
        if len(value) and np.isfinite(value.iloc[0]):
            axes.axhline(value.iloc[0], color="black", linestyle=line, linewidth=1.2, label=f"{method} (no noise)")
    axes.set_xticks(ticks, order)
    axes.set_xlim(-0.4, len(order) - 0.6)


SPREAD = 0.25
"""Counts are coloured by log(1 + count / SPREAD), so that rates well below one can be told apart."""


def save_heatmaps(panels: Mapping[str, np.ndarray], names: Sequence[str], most: float, path: Path) -> None:
    """Write the panels, (people, people) matrices by title, as a PNG; colours run from 0 to ``most``.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    from matplotlib.colors import FuncNorm

    figure = new_figure(13.0, 4.1)
    norm = FuncNorm((compressed, expanded), vmin=0.0, vmax=most)
    axes = figure.subplots(1, len(panels))
    image: Any = None
    for place, (title, matrix) in zip(axes, panels.items(), strict=True):
        image = place.imshow(matrix, cmap=HEAT, norm=norm, interpolation="nearest")
        place.set_title(title, fontsize=9)
        place.set_xticks([])
        place.set_yticks([])
    step = 4
    axes[0].set_yticks(range(0, len(names), step), names[::step], fontsize=6)
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.4, aspect=40, ticks=[0, 1, 3, 10, 30])
    bar.set_label("chapters in which two people both appear (counts or estimated rates)", fontsize=9)
    figure.suptitle(
        f"{len(names)} people of Les Misérables, ordered by the communities that countveil found", fontsize=11
    )
    figure.savefig(path, dpi=150, format="png")


def compressed(count: Any) -> Any:
    """The colour scale."""
    return np.log1p(np.asarray(count) / SPREAD)


def expanded(value: Any) -> Any:
    """Its inverse."""
    return SPREAD * np.expm1(value)


# The demo from beginning to end: run, print, and write its files.


def present(plan: Plan, output: Path, corpus: Corpus | None = None) -> Study:
    """Run the demo on a corpus (None for Reuters), print its tables and write its files to ``output``.

    Raises:
        ModuleNotFoundError: a package of the extra ``demo`` is missing.
        ValueError: as ``demo.run``.
        OSError: ``output`` cannot be written to.
    """
    corpus = corpora.load_reuters() if corpus is None else corpus
    output.mkdir(parents=True, exist_ok=True)
    with ProgressWatcher(error_console()) as watcher:
        study = run(corpus, plan, watcher)
        watcher.stage("scored; writing files")
        written = write_files(study, output)
    screen = console()
    n_documents, n_words = corpus.counts.shape
    screen.print(
        f"{n_documents} documents x {n_words} words, {plan.sampling.n_topics} topics; exact noise on every cell, "
        f"{plan.noise_draws} fresh draws per level.",
        highlight=False,
    )
    screen.print(score_table(study.fits))
    screen.print(notes(), highlight=False)
    screen.print(words_table(study, corpus))
    screen.print(verdict_lines(verdicts(study.fits, OURS.name, NAIVE.name, LEAST_SQUARES.name)))
    screen.print(topics_table(study))
    screen.print(study.printed.diagnostics().line, highlight=False)
    screen.print("Wrote " + ", ".join(str(path) for path in written), highlight=False, soft_wrap=True)
    return study


def write_files(study: Study, output: Path) -> list[Path]:
    """The release, the table, every fit's scores and the figure; each is replaced in one step."""
    paths = [output / name for name in ("release.npz", "scores.csv", "fits.csv", "scores.png")]
    study.release.save(paths[0])
    write_csv(summary(study.fits), paths[1])
    write_csv(study.fits, paths[2])
    with replacing(paths[3]) as path:
        save_figure(study.fits, path)
    return paths
