"""Forecasts and smoothing of two real tensors over time, by dynamic and static models: python benchmarks/forecasts.py.

python benchmarks/forecasts.py FOLDER [--actors NUMBER] [--components 20] [--sweeps 200] [--chains 2] [--levels 1 2 3]
    [--models steady volumes static known] [--naive MODEL ...] [--dispersion row] [--background] [--concentration 1]
    [--likelihood negative-binomial] [--corpus NAME ...] [--months 38 ...] [--parts] [--seed 1]

FOLDER holds enron_network/enron161_monthly_tensor.npz and icews/icews_tensor.npz; of each, all actors are taken, or as
many as are said, with the largest counts. The last steps are held back, and some steps in the middle are masked; models
are fitted once to the rest. Enron's mail may end in several --months, as if it were known until four months before each
of them: forecasts from several origins, whose means come last. Printed are log scores per held-back count (the sum over
cells of the log of the predictive probability of the true count, by the sum of counts) of the steps to come and of
those in the middle, by fits to true counts, to reports taken for true counts ("naive") and to reports with their noise
("ours"), at epsilon/N = LEVEL. Each is followed by how many per cent it is behind the fit of the same model to true
counts. Seconds are of the processor.

The static model is a ``TensorModel``, whose last step goes on. "known" is the dynamic model with its components as a
draw of its fit to true counts has them: what is left to learn from reports is activity, transitions and dispersion.

The rule of the last value is negative binomial, with the mean of the last steps that were seen, plus a constant; for
the middle it takes the step before; masked steps are left out. Its numbers (how many steps, the constant, the
dispersion) are those that predict best what was seen: the last steps from those before them, for the middle every step
from the one before; reports below zero count as zero. "Poisson, known" and "in bursts, known" are rules whose numbers
are best for the held-back counts, which nobody knows, and "a year before" takes the step a year before with such
numbers, in bursts.

``--rolling`` has real and simulated series instead, whose last steps are forecast from several origins, twelve steps
ahead (four for series of at most 60 steps), by models with and without volumes, levels and seasons and by rules of
thumb. Errors are differences of medians from the true counts, one step ahead and over all steps: root mean squared, and
mean absolute, which medians are chosen for. Scores are log predictive probabilities per cell. A rule's score is that of
a negative binomial law, whose numbers predict best the last steps seen.

Three more series are forecast if FOLDER/public holds their files, all CC BY 4.0: weekly deaths in twelve countries
(COUNTRY_weekly_deaths.csv for those in COUNTRIES, from output-data/historical-deaths of
github.com/TheEconomist/covid-19-excess-deaths-tracker, commit 34dbd4e3), and from github.com/fivethirtyeight/data,
commit fcf572c4, births in the US by month and weekday (births/US_births_2000-2014_SSA.csv) and police officers who died
on duty, by quarter and state (police-deaths/all_data.csv).
"""

import argparse
import itertools
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import countveil as cv
from countveil.fit import dynamics
from countveil.fit.forecasts import over_cells
from countveil.inference.posterior import factor_draws, parameter_draws
from countveil.models.factorization import factorization

FLOORS = 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0
SPANS = 1, 2, 3, 6, 12
POISSON = (0.0,)
BURSTS = 0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998  # p of negative binomial rules
MODELS = "steady", "volumes", "static", "known"
MOST = 200  # draws of a forecast
MONTHS = 38  # of Enron's mail; there is little afterwards
MOST_MONTHS = 44  # that there are
AHEAD = 4  # months to come
SHORT = 60  # steps of a series of which no more are forecast
MASKED = 14, 4  # steps of Enron's mail that are masked, so many before the steps to come
RULES = {"last value": 1, "mean of three": 3, "last season": 0}  # steps that they take, or a season
COUNTRIES = "cyprus estonia iceland ireland latvia lithuania luxembourg malta montenegro new_zealand norway slovenia"
PAST = 0, 1, 8  # counts of a pair before the steps to come, from which parts of a forecast's score begin


class Task(NamedTuple):
    """What models see of a tensor, and what they are asked."""

    name: str
    counts: np.ndarray  # without the steps to come
    later: np.ndarray
    mask: np.ndarray
    steps: list[int]  # that are masked
    year: int  # steps of a year; 0 if steps are years


def tasks(folder, actors, months):
    """Both tensors, (source, target, .., time); that of mail once for each number of months."""
    mail = np.load(folder / "enron_network/enron161_monthly_tensor.npz", allow_pickle=False)
    events = np.load(folder / "icews/icews_tensor.npz", allow_pickle=False)
    enron = largest(full(mail["subs_dedup"], mail["counts_dedup"], mail["shape"]), actors)
    icews = largest(full(events["subs"], events["counts"], events["shape"]), actors)
    return [
        *(task("Enron by month", enron[..., :n], AHEAD, [n - AHEAD - before for before in MASKED], 12) for n in months),
        task("ICEWS by year", icews, 2, [5, 8], 0),
    ]


def task(name, tensor, ahead, steps, year):
    """A tensor whose last steps are held back, with some masked."""
    counts, later = tensor[..., :-ahead], tensor[..., -ahead:]
    mask = np.zeros(counts.shape, dtype=bool)
    mask[..., steps] = True
    return Task(name, counts, later, mask, steps, year)


def full(subs, counts, shape):
    """A dense tensor."""
    found = np.zeros(tuple(int(n) for n in shape), dtype=np.int64)
    subs = subs if subs.shape[1] == found.ndim else subs.T
    np.add.at(found, tuple(subs.T), counts)
    return found


def largest(counts, actors):
    """The tensor among the actors with the largest counts, or all."""
    if actors is None:
        return counts
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


def score_of_steps(fit, counts, steps):
    """The log of the mean over draws of the probability of counts in cells of these steps, by the count."""
    model, total, n = fit.model_, None, 0
    draws = zip(factor_draws(*fit._fitted()), parameter_draws(*fit._fitted()[:2]), strict=False)
    for factors, own in draws:
        factors[-1] = factors[-1][steps]
        rates = np.einsum(model.spec.text, *factors, optimize="greedy")
        each = model.likelihood.log_mass(counts, rates, over_cells(model, own))
        total = each if total is None else np.logaddexp(total, each)
        n += 1
    return score(total - np.log(n), counts)


def scores(fit, task):
    """(score of the steps to come, of the middle); a static model's last step goes on."""
    middle = score_of_steps(fit, task.counts[..., task.steps], task.steps)
    if not isinstance(fit, cv.DynamicModel):
        return score_of_steps(fit, task.later, [-1]), middle
    ahead = fit.forecast(task.later.shape[-1], draws=MOST)
    return score(ahead.log_predictive(task.later), task.later), middle


def parts(fit, task):
    """The score of the steps to come in parts, by the sum of a pair's true counts before, masked steps included."""
    each = fit.forecast(task.later.shape[-1], draws=MOST).log_predictive(task.later).to_numpy().sum(axis=-1)
    place = np.digitize(task.counts.sum(axis=-1), PAST)
    return [score(each[place == i + 1], task.later) for i in range(len(PAST))]


def rules(seen, task):
    """{rule: (score of the steps to come, of the middle)}."""
    n, known = seen.shape[-1], np.maximum(seen, 0).astype(float)
    ahead, middle = task.later.shape[-1], task.counts[..., task.steps]
    hidden = task.mask.any(axis=tuple(range(task.mask.ndim - 1)))
    pairs = [s for s in range(1, n) if not hidden[s - 1 : s + 1].any()]
    shown = np.flatnonzero(~hidden)
    lasts, before = last_means(seen[..., shown]), [known[..., [s - 1 for s in task.steps]]]
    earlier = (known[..., shown[-ahead:]], last_means(seen[..., shown[:-ahead]]))
    adjacent = (known[..., pairs], [known[..., [s - 1 for s in pairs]]])
    found = {
        "last value": (
            score_by(best_numbers(*earlier, BURSTS), task.later, lasts),
            score_by(best_numbers(*adjacent, BURSTS), middle, before),
        ),
        "Poisson, known": (best_of(task.later, lasts, POISSON), best_of(middle, before, POISSON)),
        "in bursts, known": (best_of(task.later, lasts, BURSTS), best_of(middle, before, BURSTS)),
    }
    if 0 < task.year <= min(task.steps):
        last = known[..., n - task.year : n - task.year + ahead]
        before = known[..., [s - task.year for s in task.steps]]
        found["a year before"] = best_of(task.later, [last], BURSTS), best_of(middle, [before], BURSTS)
    return found


def last_means(seen):
    """Means of the last steps, not below zero, for each of SPANS."""
    return [np.maximum(seen[..., -span:].mean(axis=-1), 0.0)[..., None] for span in SPANS]


def best_numbers(counts, candidates, dispersions):
    """(number of a candidate, constant, dispersion) of the law that predicts these counts best."""
    tried = itertools.product(range(len(candidates)), FLOORS, dispersions)
    return max(tried, key=lambda numbers: score_by(numbers, counts, candidates))


def score_by(numbers, counts, candidates):
    """The score of the law with these numbers."""
    candidate, floor, p = numbers
    return score(log_mass(counts, candidates[candidate] + floor, p), counts)


def best_of(counts, candidates, dispersions):
    """The best score that any numbers reach."""
    return score_by(best_numbers(counts, candidates, dispersions), counts, candidates)


def log_mass(counts, means, p):
    """Of negative binomial counts with these means and variances 1 / (1 - p) times as large."""
    if p == 0.0:
        return stats.poisson.logpmf(counts, means)
    return stats.nbinom.logpmf(counts, means * (1.0 - p) / p, 1.0 - p)


class Known(cv.DynamicModel):
    """A dynamic model whose components are ``given``, by the names of their factors."""

    def _model(self, spec, sizes, mean_count):
        """The same model, with these factors fixed."""
        model = super()._model(spec, sizes, mean_count)
        priors = {factor.name: factor.prior for factor in model.factors}
        return factorization(spec, sizes, priors, likelihood=model.likelihood, fixed=self.given)


def fitted(kind, data, task, given, options):
    """A fit, and the seconds that it took; ``given`` is the fit whose components are known."""
    sampling = {name: getattr(options, name) for name in ("chains", "seed", "likelihood")}
    sampling |= {"tune": options.sweeps, "draws": options.sweeps // 2, "method": cv.Gibbs(thin=2)}
    sampling |= {"threads": 1, "progress": False}
    dynamic = {"time": task.counts.ndim - 1, "background": options.background}
    if options.likelihood == "negative-binomial":
        sampling["dispersion"] = options.dispersion
    if kind == "static":
        model = cv.TensorModel(options.components, **sampling)
    elif kind == "known":
        model = Known(options.components, **dynamic, **sampling)
        drawn = given.posterior["posterior"]
        names = [name for name in given.model_.spec.names if name != "activity"]
        model.given = {name: drawn[name].to_numpy()[0, -1].astype(float) for name in names}
    else:
        model = cv.DynamicModel(options.components, steady=kind == "steady", **dynamic, **sampling)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(data), time.process_time() - started


def run(task, options):
    """Print the scores of one tensor; {(data, model): (score of the steps to come, of the middle)}."""
    shape = (*task.counts.shape[:-1], task.counts.shape[-1] + task.later.shape[-1])
    total, to_come = task.counts.sum() + task.later.sum(), task.later.sum()
    print(f"\n{task.name}: {' x '.join(map(str, shape))}, sum {total:,}, to come {to_come:,}")
    heading()
    given, all_found = None, {}
    for kind, level in [("true", None), *((k, a) for a in options.levels for k in ("naive", "ours"))]:
        seen = task.counts if level is None else reports_of(task.counts, level, options.seed)
        data = observed(kind, seen, level, task.mask)
        label = kind if level is None else f"{kind}, {level:g}"
        for model in options.models:
            if (kind != "ours" and model == "known") or (kind == "naive" and model not in options.naive):
                continue
            fit, seconds = fitted(model, data, task, given, options)
            given = fit if kind == "true" and model == "steady" else given
            all_found[label, model] = scores(fit, task)
            line(label, model, all_found, seconds)
            if options.parts and isinstance(fit, cv.DynamicModel):
                shown = ", ".join(f"{part:.4f}" for part in parts(fit, task))
                print(
                    f"{'':10} its forecast in parts, by the counts of pairs before, from {PAST} on: {shown}", flush=True
                )
        if kind != "ours":
            for rule, found in rules(seen, task).items():
                all_found[label, rule] = found
                line(label, rule, all_found, 0.0)
    return all_found


def observed(kind, seen, level, mask):
    """Reports or counts as models take them."""
    if kind == "ours":
        return cv.PrivatizedCounts(seen, np.exp(-level), mask=mask)
    return (cv.ExactCounts if kind == "true" else cv.NaiveCounts)(seen, mask=mask)


def heading():
    """Print the names of the columns."""
    print(f"{'data':10} {'model':18}{'forecast':>12}{'behind, %':>12}{'middle':>12}{'behind, %':>12}{'seconds':>9}")


def line(label, model, all_found, seconds):
    """Print one row of the table, beside the same model of true counts."""
    found, first = all_found[label, model], all_found["true", "steady" if model == "known" else model]
    pairs = "".join(f"{a:12.4f}{100.0 * (a / b - 1.0):12.1f}" for a, b in zip(found, first, strict=True))
    print(f"{label:10} {model:18}{pairs}{seconds:9.0f}", flush=True)


def mean_over(runs):
    """Print the mean scores of several runs."""
    print(f"\nMeans of {len(runs)}")
    heading()
    shared = [key for key in runs[0] if all(key in run for run in runs)]
    means = {key: tuple(np.mean([run[key] for run in runs], axis=0)) for key in shared}
    for key in means:
        line(*key, means, 0.0)


def series(folder):
    """{name: (counts (T, ...), steps of a season or 0, components)} of what ``--rolling`` forecasts."""
    rng, disease, pgds = np.random.default_rng(5), folder / "time/disease", folder / "time/pgds"
    mail = np.load(folder / "enron_network/enron161_monthly_tensor.npz", allow_pickle=False)
    mail = largest(full(mail["subs_dedup"], mail["counts_dedup"], mail["shape"]), 30)[..., :MONTHS]
    cases = np.loadtxt(disease / "influenza_meningococcal_germany_weekly.csv", delimiter=",", skiprows=1)
    walks = np.cumsum(0.2 * rng.standard_normal((80, 20)), axis=0) + 0.5 * rng.standard_normal(20)
    phase = np.arange(84)[:, None] / 12 + rng.random(20)
    seasons = rng.gamma(2.0, 10.0, 20) * np.exp(0.8 * np.cos(2.0 * np.pi * phase))
    found = public(folder / "public") if (folder / "public").is_dir() else {}
    return found | {
        "measles by state": (np.load(disease / "measles_germany_state_weekly.npz")["count"], 52, 5),
        "measles by district": (np.load(disease / "measles_weser_ems_weekly.npz")["count"], 52, 5),
        "influenza and meningitis": (cases[:, 1:], 52, 2),
        "addresses, 40 words": (commonest(pgds / "sotu.npz", 40), 0, 8),
        "events, 40 pairs": (commonest(pgds / "icews200123.npz", 40)[:200], 0, 8),
        "mail, 30 people": (np.moveaxis(mail, -1, 0), 12, 8),
        "simulated random walks": (rng.poisson(np.minimum(20.0 * np.exp(walks), 1e4)), 0, 8),
        "simulated seasons": (rng.poisson(seasons), 12, 8),
    }


def public(folder):
    """The same of public files, as they are downloaded."""
    weekly = pd.concat([pd.read_csv(folder / f"{name}_weekly_deaths.csv") for name in COUNTRIES.split()])
    weekly = weekly[weekly["year"].between(2015, 2019)]
    births = pd.read_csv(folder / "US_births_2000-2014_SSA.csv")
    officers = pd.read_csv(folder / "all_data.csv")
    died = pd.to_datetime(officers["eow"].str[5:], format="%A, %B %d, %Y").rename("quarter")
    state = officers["dept"].str[-2:].rename("state")
    kept = died.between("2002-01-01", "2015-12-31") & ~officers["cause"].str.contains("9/11")
    kept &= ~officers["person"].str.match(r"K9 (?!Officer)") & ~state.isin("US TR PR VI GU RR AS".split())
    by_quarter = officers[kept].groupby([died[kept].dt.to_period("Q"), state[kept]]).size()
    return {
        "deaths by week": (
            weekly.pivot(index="start_date", columns="country", values="total_deaths").to_numpy(),
            52,
            5,
        ),
        "births by month": (
            births.groupby(["year", "month", "day_of_week"])["births"].sum().unstack().to_numpy(),
            12,
            3,
        ),
        "officers by quarter": (by_quarter.unstack(fill_value=0).to_numpy(), 4, 5),
    }


def commonest(path, n):
    """(T, n) counts of the most frequent things in a file of triplets."""
    data = np.load(path, allow_pickle=True)
    counts = np.zeros(tuple(data["shape"]), dtype=np.int64)
    np.add.at(counts, (data["row"], data["col"]), data["count"].astype(np.int64))
    return counts[:, np.sort(np.argsort(-counts.sum(axis=0))[:n])]


def rolling(options):
    """Print a line for each series, noise level and forecast, as a CSV."""
    errors = "error of one step,error,absolute error of one step,absolute error"
    print(f"series,noise level,forecast,{errors},score of one step,score,coverage of 90%,seconds")
    for name, (values, season, components) in series(options.folder).items():
        if options.corpus and not any(each in name for each in options.corpus):
            continue
        counts, ahead = np.asarray(values, dtype=np.int64), 12 if len(values) > SHORT else AHEAD
        step = 12 if ahead == 12 else 2
        fewest = len(counts) - ahead - step * (options.origins - 1)
        for level in (None, *options.levels):
            seen = counts if level is None else reports_of(counts, level, options.seed)
            found = {}
            for origin in range(options.origins):
                n = len(counts) - ahead - origin * step
                later = counts[n : n + ahead]
                for label, asked in variants(season if season <= fewest else 0).items():
                    each = rolled(seen[:n], level, later, asked, components, name, options)
                    found.setdefault(label, []).append(each)
                for rule, each in rules_ahead(seen[:n].astype(float), later, season).items():
                    found.setdefault(rule, []).append(each)
            for label, each in found.items():
                errors, absolute, scored, *others = (np.array(part) for part in zip(*each, strict=True))
                numbers = [np.sqrt(errors[:, 0].mean()), np.sqrt(errors.mean())]
                numbers += [part for each in (absolute, scored) for part in (each[:, 0].mean(), each.mean())]
                shown = ",".join(f"{number:.4g}" for number in (*numbers, *(part.mean() for part in others)))
                print(
                    f"{name!r},{'true counts' if level is None else level},{label},{shown}".replace("'", '"'),
                    flush=True,
                )


def variants(season):
    """Options of models by what lines of the table call them."""
    found = {"without": {}, "with levels": {"levels": True}}
    if season:
        found |= {"with seasons": {"season": season}, "with both": {"season": season, "levels": True}}
    return found | {f"steady, {label}": asked | {"steady": True} for label, asked in found.items()}


def rolled(seen, level, later, asked, components, name, options):
    """(squared and absolute errors of medians and scores by step ahead, coverage, seconds) of a fit to steps seen."""
    data = cv.ExactCounts(seen) if level is None else cv.PrivatizedCounts(seen, np.exp(-level))
    sampling = {"tune": options.sweeps, "draws": options.sweeps // 2, "chains": options.chains}
    sampling |= {"seed": options.seed, "threads": 1, "progress": False}
    model = cv.DynamicModel(components, background="mail" in name, **asked, **sampling)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = model.fit(data)
    seconds, ahead = time.process_time() - started, fit.forecast(len(later), draws=MOST)
    low, median, high = np.quantile(ahead.counts.to_numpy(), (0.05, 0.5, 0.95), axis=0, method="inverted_cdf")
    covered = ((low <= later) & (later <= high)).mean()
    scored = ahead.log_predictive(later).to_numpy()
    return by_step((median - later) ** 2), by_step(abs(median - later)), by_step(scored), covered, seconds


def by_step(values):
    """(T,) means."""
    return values.reshape(len(values), -1).mean(axis=1)


def rules_ahead(seen, later, season):
    """The same of rules of thumb, without coverage and seconds."""
    found, ahead = {}, len(later)
    for rule, back in RULES.items():
        if rule == "last season" and not 0 < season <= len(seen) - ahead:
            continue
        value = by_rule(seen, ahead, back, season)
        scored = [by_step(log_mass(later, value + floor, p)) for floor, p in numbers_of_rule(seen, ahead, back, season)]
        scored = np.append(scored[0][:1], scored[1][1:])
        found[rule] = by_step((value - later) ** 2), by_step(abs(value - later)), scored, np.nan, np.nan
    return found


def by_rule(seen, ahead, back, season):
    """(ahead, ...) the mean of the last steps, or the steps a season before; not below zero."""
    if back:
        return np.maximum(np.repeat(seen[-back:].mean(axis=0)[None], ahead, axis=0), 0.0)
    return np.maximum(seen[[len(seen) - season + i % season for i in range(ahead)]], 0.0)


def numbers_of_rule(seen, ahead, back, season):
    """(constant, dispersion), for one step ahead and for several, that predict best the last steps seen."""
    tried = range(len(seen) - max(6, ahead), len(seen))
    targets = np.maximum(seen[list(tried)], 0.0)
    one = np.concatenate([by_rule(seen[:t], 1, back, season) for t in tried])
    several = by_rule(seen[: tried[0]], len(tried), back, season)
    return [best_numbers(targets, [each], BURSTS)[1:] for each in (one, several)]


def main():
    """Print tables of scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--actors", type=int, help="those with the largest counts; all unless it is said")
    parser.add_argument("--components", type=int, default=20)
    parser.add_argument("--sweeps", type=int, default=200)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--levels", type=float, nargs="*", default=[1.0, 2.0, 3.0])
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    parser.add_argument("--naive", nargs="*", default=MODELS, help="of them, those with naive fits")
    parser.add_argument("--likelihood", default="negative-binomial")
    parser.add_argument("--dispersion", default="row", help="row: each source has one; global: one for all")
    parser.add_argument("--background", action="store_true", help="a component that is spread over all cells")
    parser.add_argument("--concentration", type=float, default=dynamics.BACKGROUND, help="of the background")
    parser.add_argument("--corpus", nargs="*")
    parser.add_argument("--months", type=int, nargs="+", default=[MONTHS], help="where Enron's mail ends")
    parser.add_argument("--parts", action="store_true", help="split forecasts' scores by the counts of pairs before")
    parser.add_argument("--seed", type=int, default=1, help="of the noise and of the fits")
    parser.add_argument(
        "--rolling", action="store_true", help="series from several origins, with and without levels and seasons"
    )
    parser.add_argument("--origins", type=int, default=3)
    options = parser.parse_args()
    if options.rolling:
        rolling(options)
        return
    if "known" in options.models and "steady" not in options.models:
        parser.error("known needs steady, whose components it takes")
    if not all(AHEAD + MASKED[0] + 2 <= n <= MOST_MONTHS for n in options.months):
        parser.error(f"--months must be from {AHEAD + MASKED[0] + 2} to {MOST_MONTHS}, got {options.months}")
    dynamics.BACKGROUND = options.concentration
    found = {}
    for each in tasks(options.folder, options.actors, options.months):
        if not options.corpus or any(name in each.name for name in options.corpus):
            found.setdefault(each.name, []).append(run(each, options))
    for runs in found.values():
        if len(runs) > 1:
            mean_over(runs)


if __name__ == "__main__":
    main()
