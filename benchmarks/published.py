"""Smoothing and forecasting as Schein, Zhou and Wallach (2016) measure them: python benchmarks/published.py.

python benchmarks/published.py FOLDER [--components 50] [--sweeps 150] [--chains 2] [--levels 2] [--masks 1 2]
    [--corpus NAME ...] [--seed 1]

FOLDER holds time/pgds/sotu.npz and time/pgds/icews200123.npz: words of the State of the Union addresses by year,
and events of pairs of countries in steps of three days, both cut to 1,000 things, with two masks each. A mask hides
six steps in the middle and the last one or two. Fits see the rest; the last steps are not given to them at all.

Printed are the paper's mean relative error, the mean over cells of |count - mean| / (1 + count), its mean absolute
error, and the log score per count (the log of the predictive probability of the counts, by their sum), for the last
steps (forecast) and for those in the middle. Means are of the posterior. The rules have no model: the mean of each
thing over all steps that were seen; the last value; and for the middle, the mean of the steps before and after.
Their log scores are negative binomial, with the dispersion and the constant that are best for the held-back counts.
Seconds are of the processor.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from forecasts import BURSTS, best_of, observed, reports_of, score, score_of_steps

import countveil as cv

CORPORA = {"sotu": "State of the Union", "icews200123": "ICEWS 2001 to 2003"}
FITS = {  # what a fit of the true counts is called, and its options
    "dynamic, Poisson": {"likelihood": "poisson"},
    "dynamic": {},
    "dynamic, volumes": {"steady": False},
}
MOST = 200  # draws of a forecast


class Task(NamedTuple):
    """What fits see of a matrix, things by time, and what they are asked."""

    counts: np.ndarray  # without the steps to come
    later: np.ndarray
    steps: np.ndarray  # in the middle that are masked

    @property
    def mask(self) -> np.ndarray:
        """The cells of the steps in the middle."""
        found = np.zeros(self.counts.shape, dtype=bool)
        found[:, self.steps] = True
        return found

    @property
    def middle(self) -> np.ndarray:
        """The counts of the steps in the middle."""
        return self.counts[:, self.steps]


class Errors(NamedTuple):
    """How near a prediction is to counts."""

    relative: float
    absolute: float
    log_score: float


def task(path: Path, mask: int) -> Task:
    """One of the masks of a file."""
    held = np.load(path, allow_pickle=False)
    counts = np.zeros(held["shape"], dtype=np.int64)
    np.add.at(counts, (held["row"], held["col"]), held["count"])
    hidden = held[f"mask{mask}"].all(axis=1)
    seen = int(np.flatnonzero(~hidden)[-1]) + 1
    return Task(counts[:seen].T, counts[seen:].T, np.flatnonzero(hidden[:seen]))


def errors(counts: np.ndarray, means: np.ndarray, log_score: float) -> Errors:
    """Of these means, over all cells."""
    apart = np.abs(counts - means)
    return Errors(float((apart / (1.0 + counts)).mean()), float(apart.mean()), log_score)


def of_fit(fit: Any, given: Task) -> tuple[Errors, Errors]:
    """(of the steps to come, of those in the middle)."""
    ahead = fit.forecast(given.later.shape[1], draws=MOST)
    forecast = score(ahead.log_predictive(given.later), given.later)
    means = ahead.rates.mean("draw").to_numpy()
    middle = fit.rate().to_numpy()[:, given.steps]
    smoothed = score_of_steps(fit, given.middle, given.steps)
    return errors(given.later, means, forecast), errors(given.middle, middle, smoothed)


def of_rules(seen: np.ndarray, given: Task) -> dict[str, tuple[Errors | None, Errors]]:
    """{rule: (of the steps to come, of those in the middle)}."""
    shown = np.delete(np.maximum(seen, 0), given.steps, axis=1).astype(float)
    places = np.delete(np.arange(seen.shape[1]), given.steps)
    after = np.searchsorted(places, given.steps)
    average = shown.mean(axis=1, keepdims=True)
    before, between = shown[:, after - 1], (shown[:, after - 1] + shown[:, after]) / 2.0
    return {
        "mean of all steps": (of_means(given.later, average), of_means(given.middle, average)),
        "last value": (of_means(given.later, shown[:, -1:]), of_means(given.middle, before)),
        "before and after": (None, of_means(given.middle, between)),
    }


def of_means(counts: np.ndarray, means: np.ndarray) -> Errors:
    """Of a rule without a law: with the best negative binomial around its means, a constant added."""
    return errors(counts, means, best_of(counts, [means], BURSTS))


def run(name: str, given: Task, options: argparse.Namespace) -> None:
    """Print the errors of one task."""
    things, steps = given.counts.shape
    print(
        f"\n{name}: {things} things, {steps} steps, {given.later.shape[1]} to come, {given.counts.sum():,} counts"
    )
    print(
        f"{'data':10} {'model':20}"
        + "".join(f"{f'{what}: MRE':>15}{'MAE':>8}{'log':>9}" for what in ("forecast", "middle"))
        + f"{'seconds':>9}"
    )
    seen = {"true": given.counts} | {
        f"{kind}, {a:g}": reports_of(given.counts, a, options.seed)
        for a in options.levels
        for kind in ("naive", "ours")
    }
    for label, reports in seen.items():
        kind, level = label.split(",")[0], float(label.split(",")[1]) if "," in label else 0.0
        data = observed(kind, reports, level, given.mask)
        for model, own in FITS.items() if kind == "true" else [("dynamic", FITS["dynamic"])]:
            fit, seconds = fitted(data, own, options)
            line(label, model, of_fit(fit, given), seconds)
        if kind != "ours":
            for rule, found in of_rules(reports, given).items():
                line(label, rule, found, 0.0)


def fitted(data: Any, own: dict[str, Any], options: argparse.Namespace) -> tuple[Any, float]:
    """A fit, and the seconds that it took."""
    model = cv.DynamicModel(
        options.components, time=1, chains=options.chains, seed=options.seed, tune=options.sweeps,
        draws=options.sweeps // 2, thin=2, threads=1, progress=False, **own,
    )  # fmt: skip
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(data), time.process_time() - started


def line(label: str, model: str, found: tuple[Errors | None, Errors], seconds: float) -> None:
    """Print one row of the table."""
    empty = f"{'-':>15}{'-':>8}{'-':>9}"
    said = [empty if each is None else "{:15.3f}{:8.3f}{:9.3f}".format(*each) for each in found]
    print(f"{label:10} {model:20}{''.join(said)}{seconds:9.0f}", flush=True)


def main() -> None:
    """Print tables of errors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--sweeps", type=int, default=150)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--levels", type=float, nargs="*", default=[2.0])
    parser.add_argument("--masks", type=int, nargs="*", choices=(1, 2), default=[1, 2])
    parser.add_argument("--corpus", nargs="*", choices=tuple(CORPORA), default=list(CORPORA))
    parser.add_argument("--seed", type=int, default=1, help="of the noise and of the fits")
    options = parser.parse_args()
    for corpus in options.corpus:
        for mask in options.masks:
            given = task(options.folder / f"time/pgds/{corpus}.npz", mask)
            run(f"{CORPORA[corpus]}, mask {mask}", given, options)


if __name__ == "__main__":
    main()
