"""Wrong claims about the noise, with the verdict that each must get; and right twins, which must not be doubted.

Every claim makes a table from a generator, as it was published and as it is stated.
``python -m tests.wrong_claims 200 --processes 16 --file twins.csv`` fits this many releases of each right twin that
needs a fit, and prints how many were doubted. Every fit is a line of the file at once; those that it has are left out.
"""

import argparse
import csv
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

import countveil as cv
from countveil import mechanisms as m
from countveil.data.mechanism_checks import MechanismState, check_mechanism

SIZE = (40, 15)
CONSISTENT, CONTRADICTED, UNCHECKED = MechanismState
REFUSED = "refused"
QUICK = {"chains": 2, "threads": 1, "progress": False}
SIGMA, SCALE, ALPHA = 4.0, 3.0, 0.5


class Claim(NamedTuple):
    """What is said of a table: ``wrong`` and ``right`` make its data, or raise a ValueError."""

    wrong: Callable[[np.random.Generator], object]
    right: Callable[[np.random.Generator], object]
    verdict: str = CONTRADICTED
    twin: str = CONSISTENT
    fitted: int = 0  # draws of a fit that sees it, after half as many of tuning; 0 where reports alone show it


def counts(rng, mean=6.0, size=SIZE):
    """Counts whose rates differ by row and by column."""
    return rng.poisson(rng.gamma(1.0, 1.0, (size[0], 1)) * rng.gamma(1.0, mean, (1, size[1])))


def gaussian(rng, y, sigma=SIGMA):
    return y + np.rint(rng.normal(0.0, sigma, y.shape) * 100.0) / 100.0


def laplace(rng, y, scale=SCALE):
    return y + rng.laplace(0.0, scale, y.shape)


def geometric(rng, y, alpha=ALPHA):
    return y + rng.geometric(1.0 - alpha, y.shape) - rng.geometric(1.0 - alpha, y.shape)


def rounded(y, base):
    return (y + base // 2) // base * base


def midpoints(y, base, below):
    return np.where(y > 0, (y + base - 1) // base * base - below, 0)


def randomly_rounded(rng, y, base):
    return (y // base + (rng.random(y.shape) * base < y % base)) * base


def suppressed(y, below):
    return np.where((y > 0) & (y < below), np.nan, y)


def with_totals(change):
    """Row totals, changed, beside reports with Gaussian noise."""

    def made(rng):
        y = counts(rng, 20.0)
        totals = change(y.sum(axis=1))
        return cv.Reports(gaussian(rng, y), m.Gaussian(SIGMA), totals=[(1, totals)])

    return made


def noisy_totals(change, mechanism, noise, hide=False):
    """Row totals with noise of their own, changed, beside reports with Gaussian noise or with small counts hidden."""

    def made(change):
        def make(rng):
            y = counts(rng, 20.0)
            totals = noise(rng, change(y.sum(axis=1)))
            reports, own = (suppressed(y, 5), m.Suppression(5)) if hide else (gaussian(rng, y), m.Gaussian(SIGMA))
            return cv.Reports(reports, own, totals=[(1, totals, mechanism)])

        return make

    return Claim(made(change), made(lambda totals: totals))


def shifted(totals):
    return np.roll(totals, 1)


def too_high(totals):
    return np.rint(1.1 * totals).astype(np.int64)


def by_alpha(stated, size=SIZE, mean=2.0, cut=False):
    def made(rng):
        reports = geometric(rng, counts(rng, mean, size))
        return cv.PrivatizedCounts(np.maximum(reports, 0) if cut else reports, stated)

    return made


def twice(same, noise=geometric, mechanism=None):
    """Two reports of every count, with the same noise or with fresh noise, by ``also``."""
    mechanism = m.TwoSidedGeometric(ALPHA) if mechanism is None else mechanism

    def made(rng):
        y = counts(rng)
        first = noise(rng, y)
        second = first if same else noise(rng, y)
        return cv.Reports(first, mechanism).also(second, mechanism)

    return made


def joined(share):
    """Two releases, of which the second repeats the noise of the first in this share of the cells."""

    def made(rng):
        y = counts(rng)
        first, fresh = geometric(rng, y), geometric(rng, y)
        second = np.where(rng.random(y.shape) < share, first, fresh)
        rows = [f"row {i}" for i in range(len(y))]
        releases = [
            cv.import_reports(each, m.TwoSidedGeometric(ALPHA), "a test", row_labels=rows) for each in (first, second)
        ]
        return cv.join(releases)

    return made


def repeated_rows(times, make):
    def made(rng):
        values, state = make(rng)
        values[-1] = values[0] if times > 1 else values[-1]
        return state(values)

    return made


def under(mechanism, make):
    """Reports that ``make`` draws, stated to be of a mechanism."""
    return lambda rng: cv.Reports(make(rng), mechanism)


def noisy_table(rng):
    return geometric(rng, counts(rng, size=(40, 40))), lambda values: cv.PrivatizedCounts(values, ALPHA)


def gaussian_table(rng):
    return np.rint(gaussian(rng, counts(rng))), lambda values: cv.Reports(values, m.Gaussian(SIGMA))


def with_code(code, sigma):
    """Some cells have a code in place of a number."""

    def made(rng):
        reports = gaussian(rng, counts(rng), sigma)
        if code:
            reports[0, :3] = code
        return cv.Reports(reports, m.Gaussian(sigma))

    return made


SUPPRESSED = under(m.Suppression(10), lambda rng: suppressed(counts(rng), 10))
ROUNDED = under(m.Rounding(5), lambda rng: rounded(counts(rng, 20.0), 5))
SIGNED = under(m.Gaussian(SIGMA), lambda rng: gaussian(rng, counts(rng)))
DOUBLE = under(m.Laplace(SCALE), lambda rng: laplace(rng, counts(rng)))
TOTALS = with_totals(lambda totals: totals)
GEOMETRIC = by_alpha(ALPHA)

CLAIMS = {
    "counts below 10 hidden, stated as below 5": Claim(
        under(m.Suppression(5), lambda rng: suppressed(counts(rng), 10)), SUPPRESSED, fitted=400
    ),
    "counts below 5 hidden, stated as below 10": Claim(
        under(m.Suppression(10), lambda rng: suppressed(counts(rng), 5)),
        under(m.Suppression(5), lambda rng: suppressed(counts(rng), 5)),
        REFUSED,
        fitted=400,
    ),
    "rounded to 10, stated as 5": Claim(under(m.Rounding(5), lambda rng: rounded(counts(rng, 20.0), 10)), ROUNDED),
    "rounded to the middle of each six, stated as 3": Claim(
        under(m.Rounding(3), lambda rng: np.where((y := counts(rng)) > 0, (y + 5) // 6 * 6 - 3, 0)),
        under(m.Rounding(3), lambda rng: rounded(counts(rng), 3)),
    ),
    "rounded to the middle of each twelve, stated as each six": Claim(
        under(m.Rounding(6, "midpoint"), lambda rng: midpoints(counts(rng, 20.0), 12, 3)),
        under(m.Rounding(6, "midpoint"), lambda rng: midpoints(counts(rng, 20.0), 6, 3)),
    ),
    "hidden below 8 and rounded to 10, stated as rounded to 5": Claim(
        under(m.preset("nhs-hes"), lambda rng: rounded(suppressed(counts(rng, 20.0), 8), 10)),
        under(m.preset("nhs-hes"), lambda rng: rounded(suppressed(counts(rng, 20.0), 8), 5)),
    ),
    "rounded to 5 and hidden below 10, stated the other way round": Claim(
        under(m.preset("nhs-hes"), lambda rng: suppressed(rounded(counts(rng, 20.0), 5), 3)),
        under(m.Composed(m.Rounding(5), m.Suppression(10)), lambda rng: suppressed(rounded(counts(rng, 20.0), 5), 10)),
        REFUSED,
    ),
    "hidden below 20 and rounded, stated as below 8": Claim(
        under(m.preset("nhs-hes"), lambda rng: rounded(suppressed(counts(rng, 20.0), 20), 5)),
        under(m.preset("nhs-hes"), lambda rng: rounded(suppressed(counts(rng, 20.0), 8), 5)),
        fitted=400,
    ),
    "randomly rounded to 6, stated as 3": Claim(
        under(m.RandomRounding(3), lambda rng: randomly_rounded(rng, counts(rng), 6)),
        under(m.RandomRounding(3), lambda rng: randomly_rounded(rng, counts(rng), 3)),
    ),
    "hidden below 8 and rounded to 5, stated as hidden": Claim(
        under(m.Suppression(8), lambda rng: suppressed(rounded(counts(rng, 20.0), 5), 8)),
        under(m.Suppression(8), lambda rng: suppressed(counts(rng, 20.0), 8)),
    ),
    "cut off above 12, stated as above 60": Claim(
        under(m.TopCoding(60), lambda rng: np.minimum(counts(rng), 12)),
        under(m.TopCoding(12), lambda rng: np.minimum(counts(rng), 12)),
        fitted=500,
    ),
    "totals shifted by a label": Claim(with_totals(shifted), TOTALS),
    "totals a tenth too high": Claim(with_totals(too_high), TOTALS),
    "noisy totals shifted by a label": noisy_totals(shifted, m.Gaussian(SIGMA), gaussian),
    "noisy totals a tenth too high": noisy_totals(too_high, m.TwoSidedGeometric(ALPHA), geometric),
    "totals with more noise than all their reports, shifted by a label": noisy_totals(
        shifted, m.Gaussian(60.0), lambda rng, totals: gaussian(rng, totals, 60.0)
    ),
    "noisy totals of counts, some of them hidden, shifted by a label": noisy_totals(
        shifted, m.TwoSidedGeometric(ALPHA), geometric, hide=True
    ),
    "noisy totals of counts, some of them hidden, a tenth too high": noisy_totals(
        too_high, m.Laplace(SCALE), laplace, hide=True
    ),
    "Gaussian noise cut at zero": Claim(
        under(m.Gaussian(SIGMA), lambda rng: np.maximum(gaussian(rng, counts(rng)), 0.0)), SIGNED, REFUSED
    ),
    "Laplace noise cut at zero": Claim(
        under(m.Laplace(SCALE), lambda rng: np.maximum(laplace(rng, counts(rng)), 0.0)), DOUBLE, REFUSED
    ),
    "reports cut at zero, of another alpha": Claim(
        by_alpha(0.4, cut=True), by_alpha(ALPHA, cut=True), UNCHECKED, UNCHECKED
    ),
    "alpha too small": Claim(by_alpha(0.35), GEOMETRIC),
    "alpha too large": Claim(by_alpha(0.65), GEOMETRIC),
    "Gaussian noise larger than stated": Claim(
        under(m.Gaussian(0.5 * SIGMA), lambda rng: gaussian(rng, counts(rng, 2.0))), SIGNED
    ),
    "Gaussian noise smaller than stated": Claim(
        under(m.Gaussian(2.0 * SIGMA), lambda rng: gaussian(rng, counts(rng, 40.0))),
        under(m.Gaussian(SIGMA), lambda rng: gaussian(rng, counts(rng, 40.0))),
        fitted=800,
    ),
    "Laplace noise larger than stated": Claim(
        under(m.Laplace(0.4 * SCALE), lambda rng: laplace(rng, counts(rng, 2.0))), DOUBLE
    ),
    "a code of -99": Claim(with_code(-99.0, SIGMA), with_code(0.0, SIGMA), REFUSED),
    "a code of -99 within the reach of a refusal": Claim(with_code(-99.0, 11.0), with_code(0.0, 11.0)),
    "two reports with the same noise": Claim(twice(True), twice(False), REFUSED),
    "two Gaussian reports with the same noise": Claim(
        twice(True, gaussian, m.Gaussian(SIGMA)), twice(False, gaussian, m.Gaussian(SIGMA)), REFUSED
    ),
    "two releases with half of their noise the same": Claim(joined(0.5), joined(0.0), REFUSED),
    "a row twice": Claim(repeated_rows(2, noisy_table), repeated_rows(1, noisy_table)),
    "a row twice, with Gaussian noise": Claim(repeated_rows(2, gaussian_table), repeated_rows(1, gaussian_table)),
    "a row twice, without noise": Claim(  # which proves nothing
        under(m.Rounding(5), lambda rng: np.repeat(rounded(counts(rng, 20.0), 5), 2, axis=0)), ROUNDED, CONSISTENT
    ),
}


def verdict_on(make, rng):
    """What the reports say by themselves."""
    try:
        return check_mechanism(make(rng)).state
    except ValueError:
        return REFUSED


def fitted(make, seed, draws, **options):
    """A small fit of the claim's data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = cv.TopicModel(1, likelihood="poisson", seed=seed, draws=draws, tune=draws // 2, **QUICK, **options)
        return model.fit(make(np.random.default_rng(seed)))


def fitted_twin(name, seed):
    """(claim, seed, state of the verdict, state of the mechanism, what is wrong) of a fit of a right twin, in texts."""
    found = fitted(CLAIMS[name].right, seed, CLAIMS[name].fitted).diagnostics()
    return [name, str(seed), str(found.state), str(found.mechanism.state), " ".join(found.mechanism.wrong)]


def in_processes(n: int, left: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """What is left, as it ends. The first one is fitted alone: it leaves compiled functions on disk for the others."""
    if left:
        yield fitted_twin(*left[0])
    with ProcessPoolExecutor(n, mp_context=get_context("spawn")) as pool:
        for each in as_completed([pool.submit(fitted_twin, *key) for key in left[1:]]):
            yield each.result()


def main(arguments: Sequence[str]) -> None:
    """Print how many of n right twins a fit doubts, of every claim that takes one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", nargs="?", type=int, default=20)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--file", type=Path, help="lines of fits, which a later run continues")
    asked = parser.parse_args(arguments)
    names = [name for name, claim in CLAIMS.items() if claim.fitted]
    keys = [(name, seed) for seed in range(asked.n) for name in names]
    lines: list[list[str]] = []
    if asked.file is not None and asked.file.exists():
        lines += csv.reader(asked.file.read_text(encoding="utf-8").splitlines())
    done = {(name, int(seed)) for name, seed, *_ in lines}
    for line in in_processes(asked.processes, [key for key in keys if key not in done]):
        print(*line, sep="; ", flush=True)
        lines.append(line)
        if asked.file is not None:
            with asked.file.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow(line)
    for name in names:
        own = [line for line in lines if line[0] == name and int(line[1]) < asked.n]
        doubted = sum(bool(wrong) for *_, wrong in own)
        states = {state: sum(line[2] == state for line in own) for state in sorted({line[2] for line in own})}
        print(f"{name}: {doubted} of {len(own)} right twins are doubted; {states}")


if __name__ == "__main__":
    main(sys.argv[1:])
