"""The demo: a real corpus under exact noise, fitted from the noisy reports alone, beside its rivals.

For every level epsilon/N and every draw of the noise, each contender sees one release; what it makes of it is
scored against the true counts, which nothing else looks at. The noise is the real mechanism's, from the
operating system's entropy, so it differs in every run: the seed governs the samplers alone.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from countveil.common.console import Watcher
from countveil.engines.threads import one_blas_thread
from countveil.evaluation import npmi, relevant_words
from countveil.experiments.corpora import Corpus
from countveil.fit import TopicModel
from countveil.inference.diagnostics import FitWarning
from countveil.planning.contenders import (
    CONTENDERS,
    TRUE_COUNTS,
    ZERO,
    Estimate,
    Sampling,
    all_zero,
    on_true_counts,
    ours,
    rate_scores,
)
from countveil.privacy import PrivacyLevel, Release, privatize

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
