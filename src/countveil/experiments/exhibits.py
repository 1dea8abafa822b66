"""What the demo shows: its table, the top words side by side, and its verdicts."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from countveil.evaluation import match_topics, npmi_by_topic
from countveil.experiments.corpora import Corpus
from countveil.experiments.demo import NO_NOISE, Study, top_words
from countveil.planning.contenders import COLUMN_MEANS, CONTENDERS, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS, ZERO

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
