"""Topics of Enron's e-mails from noisy counts: the ICML paper's figure 3."""

import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import gammaln

from countveil.data.observations import ExactCounts, NaiveCounts, PrivatizedCounts
from countveil.evaluation import npmi, umass
from countveil.fit import TopicModel
from countveil.fit.base import check_whole
from countveil.inference.diagnostics import diagnose
from countveil.inference.starts.alternating import least_squares
from countveil.laws.counts.protocol import in_counts
from countveil.laws.noise.two_sided_geometric import formulas
from countveil.models.priors import USUAL_SHAPE
from countveil.planning.contenders import FLOORS, distributions
from papers import real_counts, style
from papers.bench import Bench, Study, Task, digest
from papers.claims import Comparison, Verdict, compared, untested
from papers.fits import OPTIONS, SAMPLED, Sampling
from papers.style import BURSTY, EXACT_VI, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS, ZERO

ABOUT = "topics of Enron's e-mails from noisy counts"
NEEDS = "Enron's texts"
LEVELS = (3.0, 2.0, 1.0)  # epsilon/N; the text of the paper names three levels without their values
METHODS = (OURS, BURSTY, NAIVE, LEAST_SQUARES, EXACT_VI, TRUE_COUNTS)
TOP = 10  # words of a topic whose coherence is measured
ROWS_AT_ONCE = 500  # held dense: fewer save memory


class Plan(NamedTuple):
    """The corpus and its size at most, topics, noise draws, the chains, and threads (None: all that are available).

    Naive chains may be shorter: they give all the noise to topics too, and a sweep costs ten times as much. The full
    plan leaves out bursty counts, whose sweeps take nearly twice as long.
    """

    names: tuple[str, ...]
    shape: tuple[int, int]
    n_topics: int
    noise_draws: int
    sampling: Sampling
    methods: tuple[str, ...] = METHODS
    threads: int | None = 1
    naive: Sampling | None = None

    def sampling_of(self, method: str) -> Sampling:
        """How long a method's chains are."""
        return self.naive if self.naive and method == NAIVE else self.sampling


FULL = Plan(
    real_counts.TEXT_LARGE, (10000, 10000), 50, 5, Sampling(1, 2500, 50, 100), threads=None,
    naive=Sampling(1, 100, 50), methods=tuple(each for each in METHODS if each != BURSTY),
)  # fmt: skip
QUICK = Plan(real_counts.TEXT_SMALL, (1000, 1400), 20, 2, Sampling(1, 40, 30))


def run(bench: Bench, plan: Plan) -> Study:
    """Every method at every level and noise draw; least squares, which needs all reports dense, up to 10^7 cells."""
    counts = real_counts.texts(bench, plan.names, plan.shape)
    tasks, labels = [], []
    for draw_ in range(plan.noise_draws):
        for level in LEVELS:
            for method in plan.methods:
                clean = method == TRUE_COUNTS
                if (clean and level != LEVELS[0]) or (method == LEAST_SQUARES and np.prod(counts.shape) > 10**7):
                    continue
                key = {"method": method, "level": level, "draw": draw_, "K": plan.n_topics, "shape": counts.shape,
                       "data": digest(counts), **plan.sampling_of(method)._asdict()}  # fmt: skip
                kept = bench.checkpoint(key) if method in SAMPLED else None
                work = partial(fit, method, level, draw_, counts, plan, bench, checkpoint=kept)
                tasks.append(Task(key, work))
                labels.append({"level": np.nan if clean else level, "draw": draw_, "method": method})
    rows = [
        label | {name: float(value) for name, value in each.items()}
        for label, each in zip(labels, bench.results(tasks), strict=True)
    ]
    rows.append({"level": np.nan, "draw": 0, "method": ZERO, "mae": counts.sum() / np.prod(counts.shape)})
    table = pd.DataFrame(rows)
    return Study(table, verdicts(table), draw(table, counts.shape, plan))


def noisy(counts: sp.csr_array, level: float, draw_: int, bench: Bench, signed: bool) -> Any:
    """Reports of all cells at a level: a signed array, or what is positive of them, a block of rows at a time."""
    rng, alpha, blocks = bench.rng(draw_, int(10 * level)), float(np.exp(-level)), []
    for start in range(0, counts.shape[0], ROWS_AT_ONCE):
        block = counts[start : start + ROWS_AT_ONCE].toarray()
        block += formulas.sample(alpha, rng, block.shape)
        blocks.append(block if signed else sp.csr_array(np.maximum(block, 0)))
    return np.vstack(blocks) if signed else sp.csr_array(sp.vstack(blocks))


def fit(
    method: str,
    level: float,
    draw_: int,
    counts: sp.csr_array,
    plan: Plan,
    bench: Bench,
    prior: dict[str, Any] | None = None,
    checkpoint: Path | None = None,
) -> dict[str, float]:
    """Scores and seconds of one fit; ``prior`` is options of the model that are not its defaults.

    Chains go on from the checkpoint, if it is there; their processor time is not known then.

    Raises:
        KeyboardInterrupt: the fit was interrupted, and what it drew until then is no result.
    """
    seed = 1000 * bench.seed + draw_
    if method == LEAST_SQUARES:
        reports = noisy(counts, level, draw_, bench, signed=True).astype(float)
        started = time.perf_counter()
        theta, phi = least_squares(reports, np.zeros(len(reports)), plan.n_topics, np.random.default_rng(seed), 100)
        seconds = time.perf_counter() - started
        return scores(counts, [(theta, phi.T)], distributions(phi.T), FLOORS) | {"seconds": seconds}
    if method == TRUE_COUNTS:
        data: Any = ExactCounts(counts)
    else:
        reports = noisy(counts, level, draw_, bench, signed=False)
        data = NaiveCounts(reports) if method == NAIVE else PrivatizedCounts(reports, float(np.exp(-level)))
    options: dict[str, Any] = (
        {"likelihood": "poisson", "prior_shape": USUAL_SHAPE}
        | OPTIONS.get(method, {})
        | (prior or {})
        | (plan.sampling_of(method).options(method) if method in SAMPLED else {})
    )
    worked = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TopicModel(plan.n_topics, seed=seed, threads=plan.threads, progress=False, **options)
        resumed = checkpoint is not None and checkpoint.exists()
        model.fit(data, checkpoint=checkpoint, resume=True)
    check_whole(model)
    cost = {"seconds": model.fit_seconds_,
            "processor_seconds": np.nan if resumed else time.process_time() - worked,
            "gigabytes": peak_gigabytes()}  # fmt: skip
    draws = model._reader.draws()
    scaled = (in_counts(model.model_.likelihood, *factors, own) for factors, own in draws)
    found = scores(counts, [(theta, phi.T) for theta, phi in scaled], model.components_, (0.0,)) | cost
    return found | (settled(model) if method in SAMPLED else {})


def settled(model: TopicModel) -> dict[str, float]:
    """Whether each chain has settled: split R-hat, its halves taken for chains, and ESS of the log-likelihood and
    of the sum of all rates, the worse of the two."""
    sampled = model.posterior["sample_stats"]
    traces = {name: sampled[name].to_numpy() for name in ("log_likelihood", "total_rate")}
    half = next(iter(traces.values())).shape[1] // 2
    table = diagnose({name: trace[:, : 2 * half].reshape(-1, half) for name, trace in traces.items()}).table
    return {"r_hat": table["r_hat"].max(), "ess": table["ess_bulk"].min()}


def peak_gigabytes() -> float:
    """The most memory that this process has held; NaN where the system does not say."""
    try:
        import resource
    except ModuleNotFoundError:
        return np.nan
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def scores(
    counts: sp.csr_array, draws: list[tuple[np.ndarray, np.ndarray]], topics: np.ndarray, floors: tuple[float, ...]
) -> dict[str, float]:
    """MAE and log score of the mean rates over draws (theta, phi), rows a few at a time; NPMI and UMass of top words.

    A method whose rates can be zero takes the floor that is best for it. Top words that no document holds (least
    squares may name such) make UMass NaN.
    """
    errors, logs = np.zeros(len(floors)), np.zeros(len(floors))
    for start in range(0, counts.shape[0], ROWS_AT_ONCE):
        true = counts[start : start + ROWS_AT_ONCE].toarray()
        rate = np.zeros(true.shape)
        for theta, phi in draws:
            rate += theta[start : start + ROWS_AT_ONCE].astype(float) @ phi.astype(float)
        rate /= len(draws)
        seen = true > 0
        for place, floor in enumerate(floors):
            raised = np.maximum(rate, floor)
            errors[place] += np.abs(raised - true).sum()
            with np.errstate(divide="ignore"):
                logs[place] += (true[seen] * np.log(raised[seen]) - gammaln(true[seen] + 1.0)).sum() - raised.sum()
    top = np.argsort(-topics, axis=1, kind="stable")[:, :TOP]
    occurs = np.asarray((counts > 0).sum(axis=0)).ravel() > 0
    return {
        "mae": errors.min() / np.prod(counts.shape), "log_score": logs.max() / counts.sum(),
        "npmi": npmi(top, counts), "umass": umass(top, counts) if occurs[top].all() else np.nan,
    }  # fmt: skip


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """The paper's claims about its three methods; then rivals that it does not have."""
    claims = [
        ("Rates have a lower mean absolute error than the naive way's", "mae", NAIVE),
        ("Topics have a higher NPMI than the naive way's", "npmi", NAIVE),
        ("Topics have a higher UMass coherence than the naive way's", "umass", NAIVE),
        ("Topics have a higher UMass coherence than those of the true counts", "umass", TRUE_COUNTS),
        ("The log score is higher than the naive way's (not claimed)", "log_score", NAIVE),
        ("The mean absolute error is lower than that of zero everywhere (not claimed)", "mae", ZERO),
        ("The log score is higher than that of least squares (not claimed)", "log_score", LEAST_SQUARES),
        ("Topics have a higher NPMI than those of least squares (not claimed)", "npmi", LEAST_SQUARES),
        ("The log score is higher than the exact variational method's (not claimed)", "log_score", EXACT_VI),
    ]
    bursty = [
        ("With bursty counts the log score is higher than with Poisson counts (not claimed)", "log_score"),
        ("With bursty counts topics have a higher NPMI than with Poisson counts (not claimed)", "npmi"),
    ]
    return [
        nearly_clean(table),
        *(
            compared(claim, table, ["level"], Comparison(metric, OURS, other, higher=metric != "mae"))
            for claim, metric, other in claims
        ),
        *(compared(claim, table, ["level"], Comparison(metric, BURSTY, OURS, higher=True)) for claim, metric in bursty),
    ]


def nearly_clean(table: pd.DataFrame) -> Verdict:
    """Whether the error is within a tenth of that of the fit to the true counts, at every level."""
    claim = "The mean absolute error is nearly as low as that of the true counts' fit (within 10%)"
    clean = table.loc[table["method"] == TRUE_COUNTS, "mae"].mean()
    if np.isnan(clean):
        return untested(claim, "no fit to the true counts")
    allowed = table.assign(mae=np.where(table["method"] == TRUE_COUNTS, 1.1 * table["mae"], table["mae"]))
    return compared(claim, allowed, ["level"], Comparison("mae", OURS, TRUE_COUNTS))


def draw(table: pd.DataFrame, shape: tuple[int, ...], plan: Plan) -> Any:
    """A panel for each metric, against epsilon/N."""
    panels = {
        "mae": "mean absolute error, words per cell\n(lower is better)",
        "log_score": "log score per word\n(higher is better)",
        "npmi": "NPMI of the top 10 words\n(higher is better)",
        "umass": "UMass coherence of the top 10 words\n(higher is better)",
    }
    figure = style.figure(13.0, 3.9)
    for axes, (metric, label) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        rows = table[np.isfinite(table[metric])]
        style.lines(axes, rows, "level", metric, (*METHODS, ZERO) if metric == "mae" else METHODS)
        style.tidy(axes, "epsilon/N (more noise to the left)", label)
    draws = f"bars span {plan.noise_draws} noise draws" if plan.noise_draws > 1 else "one noise draw"
    figure.suptitle(f"{shape[0]:,} e-mails x {shape[1]:,} words, {plan.n_topics} topics; {draws}", fontsize=11)
    style.legend(figure)
    return figure
