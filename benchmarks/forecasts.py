"""Forecasts and smoothing of two real tensors over time, by dynamic and static models: python benchmarks/forecasts.py.

python benchmarks/forecasts.py FOLDER [--actors 30] [--sweeps 200] [--chains 2] [--levels 1 2 3] [--corpus NAME ...]
    [--seed 1]

FOLDER holds enron_network/enron161_monthly_tensor.npz and icews/icews_tensor.npz; of each, the actors with the largest
counts are taken. The last steps are held back, and some steps in the middle are masked; models are fitted once to the
rest. Printed are log scores per held-back count (the sum over cells of the log of the predictive probability of the
true count, by the sum of counts) of the steps to come and of those in the middle, by fits to true counts, to reports
taken for true counts ("naive") and to reports with their noise ("ours"), at epsilon/N = LEVEL. The static model is a
``TensorModel``, whose last step goes on. The rule of the last value is Poisson with the mean of the last steps that
were seen, plus a constant, both chosen as they are best for the held-back counts, at true counts or at reports; for
the middle it takes the step before.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import stats

import countveil as cv
from countveil.estimators.forecasts import over_cells

FLOORS = 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0
SPANS = 1, 2, 3, 6
K = 10
MONTHS = 38  # of Enron's mail; there is little afterwards


def tensors(folder, actors):
    """{name: ((source, target, .., time) counts, steps to come, masked steps)}."""
    mail = np.load(folder / "enron_network/enron161_monthly_tensor.npz", allow_pickle=False)
    events = np.load(folder / "icews/icews_tensor.npz", allow_pickle=False)
    enron = full(mail["subs_dedup"], mail["counts_dedup"], mail["shape"])
    icews = full(events["subs"], events["counts"], events["shape"])
    return {
        "Enron by month": (largest(enron, actors)[..., :MONTHS], 4, (20, 30)),
        "ICEWS by year": (largest(icews, actors), 2, (5, 8)),
    }


def full(subs, counts, shape):
    """A dense tensor."""
    found = np.zeros(tuple(int(n) for n in shape), dtype=np.int64)
    subs = subs if subs.shape[1] == found.ndim else subs.T
    np.add.at(found, tuple(subs.T), counts)
    return found


def largest(counts, actors):
    """The tensor among the actors with the largest counts."""
    others = tuple(range(2, counts.ndim))
    pairs = counts.sum(axis=others)
    kept = np.sort(np.argsort(-(pairs.sum(axis=0) + pairs.sum(axis=1)))[:actors])
    return counts[np.ix_(kept, kept)]


def reports_of(counts, level, seed):
    """Counts with two-sided geometric noise."""
    rng, alpha = np.random.default_rng(seed), np.exp(-level)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    return counts + noise[0] - noise[1]


def score(log_probabilities, counts):
    """Per count."""
    return float(np.sum(log_probabilities) / counts.sum())


def of_middle(fit, counts, steps):
    """Score of the masked steps: the log of the mean over draws of the probability of the true counts."""
    model, names = fit.model_, fit.model_.spec.text
    total, n = None, 0
    draws = zip(cv_draws(fit), fit.parameter_draws(), strict=False)
    for factors, own in draws:
        rates = np.einsum(names, *factors, optimize="greedy")[..., steps]
        each = model.likelihood.log_mass(counts[..., steps], rates, over_cells(model, own))
        total = each if total is None else np.logaddexp(total, each)
        n += 1
    return score(total - np.log(n), counts[..., steps])


def cv_draws(fit):
    """The factors of every draw."""
    from countveil.inference.posterior import factor_draws

    return factor_draws(*fit._fitted())


def static_forecast(fit, counts):
    """Score of the steps to come, if they are like the last one."""
    model, total, n = fit.model_, None, 0
    for factors, own in zip(cv_draws(fit), fit.parameter_draws(), strict=False):
        factors[-1] = factors[-1][-1:]
        rates = np.einsum(model.spec.text, *factors, optimize="greedy")
        each = model.likelihood.log_mass(counts, rates, over_cells(model, own))
        total = each if total is None else np.logaddexp(total, each)
        n += 1
    return score(total - np.log(n), counts)


def last_values(seen, counts, later, steps):
    """(score of the steps to come, of the middle) of the best rules of the last value."""
    known = np.maximum(seen, 0).astype(float)
    to_come = max(
        score(stats.poisson.logpmf(later, known[..., -span:].mean(axis=-1)[..., None] + floor), later)
        for span in SPANS
        for floor in FLOORS
    )
    middle, before = counts[..., steps], known[..., [s - 1 for s in steps]]
    return to_come, max(score(stats.poisson.logpmf(middle, before + floor), middle) for floor in FLOORS)


def fitted(model, data):
    """A fit, and the seconds that it took."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(data), time.perf_counter() - started


def run(name, tensor, ahead, masked, options):
    """Print the scores of one tensor."""
    counts, later = tensor[..., :-ahead], tensor[..., -ahead:]
    mask, steps = np.zeros(counts.shape, dtype=bool), list(masked)
    mask[..., steps] = True
    print(f"\n{name}: {' x '.join(map(str, tensor.shape))}, sum {tensor.sum():,}, to come {later.sum():,}")
    print(
        f"{'data':20} {'model':20} {'likelihood':20} {'forecast':>9} {'middle':>9} {'seconds':>9}", flush=True
    )
    sampling = {
        "tune": options.sweeps,
        "draws": options.sweeps // 2,
        "thin": 2,
        "chains": options.chains,
        "seed": options.seed,
    }
    sampling |= {"threads": 1, "progress": False}
    kinds = [("true", None)] + [(kind, level) for level in options.levels for kind in ("naive", "ours")]
    for kind, level in kinds:
        seen = counts if level is None else reports_of(counts, level, options.seed)
        data = {
            "true": lambda: cv.ExactCounts(counts, mask=mask),
            "naive": lambda seen=seen: cv.NaiveCounts(seen, mask=mask),
            "ours": lambda seen=seen, level=level: cv.PrivatizedCounts(seen, np.exp(-level), mask=mask),
        }[kind]()
        label = kind if level is None else f"{kind}, {level:g}"
        for likelihood in options.likelihoods:
            for steady in (True, False):
                model = cv.DynamicModel(
                    K, time=counts.ndim - 1, steady=steady, likelihood=likelihood, **sampling
                )
                fit, seconds = fitted(model, data)
                to_come = score(fit.forecast(ahead).log_predictive(later), later)
                said = f"dynamic, {'steady' if steady else 'volumes'}"
                line(label, said, likelihood, to_come, of_middle(fit, counts, steps), seconds)
            fit, seconds = fitted(cv.TensorModel(K, likelihood=likelihood, **sampling), data)
            to_come, middle = static_forecast(fit, later), of_middle(fit, counts, steps)
            line(label, "static", likelihood, to_come, middle, seconds)
        if kind != "ours":
            line(label, "last value", "poisson", *last_values(seen, counts, later, steps))


def line(*columns):
    """Print one row of the table."""
    words = [f"{word:20}" for word in columns[:3]]
    print(" ".join(words + [f"{number:9.4f}" for number in columns[3:]]), flush=True)


def main():
    """Print tables of scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--actors", type=int, default=30)
    parser.add_argument("--sweeps", type=int, default=200)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--levels", type=float, nargs="*", default=[1.0, 2.0, 3.0])
    parser.add_argument("--likelihoods", nargs="*", default=["poisson", "negative-binomial"])
    parser.add_argument("--corpus", nargs="*")
    parser.add_argument("--seed", type=int, default=1, help="of the noise and of the fits")
    options = parser.parse_args()
    for name, (tensor, ahead, masked) in tensors(options.folder, options.actors).items():
        if not options.corpus or any(each in name for each in options.corpus):
            run(name, tensor, ahead, masked, options)


if __name__ == "__main__":
    main()
