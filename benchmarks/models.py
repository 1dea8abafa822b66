"""Communities and tensors of real networks from noisy reports. The tables are in benchmarks/results.

python benchmarks/models.py sweeps FOLDER   # one sweep of the block model by its number of communities
python benchmarks/models.py links FOLDER    # 161 actors: rates and held-out links, ours against naive and others
python benchmarks/models.py tensors FOLDER  # CP with 25 components of two tensors: time, memory, components
python benchmarks/models.py theta           # theta given phi at four noise levels: figure theta-given-phi.png

FOLDER holds enron_network/enron161.npz (Y), enron_network/enron161_monthly_tensor.npz and icews/icews_tensor.npz (subs,
counts, shape).
"""

import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import countveil as cv
from countveil.engines.threads import ThreadEngine, available_threads
from countveil.inference import gibbs
from countveil.inference.starts.alternating import least_squares
from countveil.inference.streams import Streams
from countveil.models.factorization import factorization, typical_priors
from countveil.models.spec import parse_spec
from countveil.planning.contenders import LEAST_SQUARES_ITERATIONS, rate_scores
from countveil.plotting.style import new_figure

LEVELS = (3, 2, 1)
COMMUNITIES = (5, 10, 20)
NOISE_DRAWS = 2
TOP = 50


def network(folder: Path) -> np.ndarray:
    """161 x 161 e-mails from row to column."""
    with np.load(folder / "enron_network" / "enron161.npz") as file:
        return file["Y"]


def sweeps(folder: Path) -> None:
    """Milliseconds a sweep, one thread, median of 200; and over that of 5 communities."""
    counts = network(folder)
    masked = np.eye(len(counts), dtype=bool)
    for level in (3, 1):
        reports = cv.privatize(counts, cv.PrivacyLevel(level, 1)).reports
        data, first = cv.PrivatizedCounts(reports, np.exp(-level), masked), 0.0
        for n in COMMUNITIES:
            spec = parse_spec("ic,jd,cd->ij", names=("theta", "to", "pi"), shared={"to": "theta"})
            sizes = {"i": 161, "j": 161, "c": n, "d": n}
            model = factorization(spec, sizes, typical_priors(spec, sizes, 0.1, None, float(counts.mean())))
            streams, engine = Streams.of_chain(1, 0), ThreadEngine(1)
            state, times = gibbs.init(data, model, streams, engine), []
            for _ in range(220):
                started = time.process_time()
                state, _ = gibbs.step(state, data, model, streams, engine)
                times.append(1e3 * (time.process_time() - started))
            median = float(np.median(times[20:]))
            first = first or median
            print(f"epsilon/N = {level}, C = {n}: {median:.2f} ms a sweep, {median / first:.2f} x")


def links(folder: Path) -> None:
    """Mean absolute error of all pairs, and of the held-out links between the busiest senders and receivers."""
    counts = network(folder)
    off = ~np.eye(len(counts), dtype=bool)
    busy = (np.argsort(-counts.sum(axis=axis), kind="stable")[:TOP] for axis in (1, 0))
    held = np.zeros_like(off)
    held[np.ix_(*busy)] = True
    rows = []
    for draw in range(NOISE_DRAWS):
        for level in LEVELS:
            reports = np.asarray(cv.privatize(counts, cv.PrivacyLevel(level, 1)).reports)
            alpha = float(np.exp(-level))
            for n in COMMUNITIES:
                for name in ("ours", "naive", "non-private", "least squares"):
                    if name == "non-private" and level != LEVELS[0]:
                        continue
                    for mask, task, cells in ((None, "all", off), (held, "held out", held & off)):
                        rate, seconds = estimate(name, counts, reports, alpha, n, mask, draw)
                        scores = rate_scores(counts[cells], rate[cells], name == "least squares")
                        rows.append((level, n, name, task, draw, scores["mae"], scores["log_score"], seconds))
        show(rows, off, held & off, counts)


def estimate(
    name: str,
    counts: np.ndarray,
    reports: np.ndarray,
    alpha: float,
    n: int,
    mask: np.ndarray | None,
    seed: int,
) -> tuple[np.ndarray, float]:
    """(rates, seconds) of one contender."""
    started = time.perf_counter()
    if name == "least squares":
        return signed_least_squares(reports, mask, n, seed), time.perf_counter() - started
    data = {
        "ours": lambda: cv.PrivatizedCounts(reports, alpha, mask),
        "naive": lambda: cv.NaiveCounts(reports, mask),
        "non-private": lambda: cv.ExactCounts(counts, mask),
    }[name]()
    fit = cv.BlockModel(
        n, likelihood="poisson", chains=2, threads=1, tune=500, draws=250, thin=2, seed=seed, progress=False
    ).fit(data)
    return fit.rate().to_numpy(), time.perf_counter() - started


def signed_least_squares(reports: np.ndarray, mask: np.ndarray | None, n: int, seed: int) -> np.ndarray:
    """Nonnegative least squares on signed reports; masked cells and the diagonal filled with fitted values again and
    again.
    """
    hidden = np.eye(len(reports), dtype=bool) | (False if mask is None else mask)
    target, zero, rng = reports.astype(float), np.zeros(len(reports)), np.random.default_rng(seed)
    target[hidden] = reports[~hidden].mean()
    for _ in range(10):
        theta, phi = least_squares(target, zero, n, rng, LEAST_SQUARES_ITERATIONS)
        target[hidden] = (theta @ phi.T)[hidden]
    return theta @ phi.T


def show(rows: list[tuple], off: np.ndarray, held: np.ndarray, counts: np.ndarray) -> None:
    """The table so far: means over noise draws."""
    columns = ["level", "C", "method", "task", "draw", "mae", "log_score", "seconds"]
    table = pd.DataFrame(rows, columns=columns).groupby(["task", "level", "C", "method"], sort=False)
    found = table[["mae", "log_score", "seconds"]].mean().unstack("method").round(3)
    print(found.to_string())
    print(f"zero predictor: {counts[off].mean():.3f} (all), {counts[held].mean():.3f} (held out)", flush=True)


def tensors(folder: Path) -> None:
    """CP of two tensors at epsilon/N = 1: seconds, peak memory, error against naive; the largest components."""
    which = {
        "enron_network/enron161_monthly_tensor.npz": ("sender", "receiver", "month"),
        "icews/icews_tensor.npz": ("source", "target", "class", "year"),
    }
    for name, modes in which.items():
        with np.load(folder / name) as file:
            shape, subs, values = tuple(file["shape"]), file["subs"], file["counts"]
        counts = np.zeros(shape, dtype=np.int64)
        np.add.at(counts, tuple(subs.T if len(subs) > len(shape) else subs), values)
        matrix = counts.reshape(shape[0], -1)
        started = time.perf_counter()
        release = cv.privatize(matrix, cv.PrivacyLevel(1, 1), truncate=True)
        reports = np.asarray(
            release.reports.todense() if hasattr(release.reports, "todense") else release.reports
        )
        print(
            f"{name}: {shape}, {counts.size:,} cells, {(reports > 0).sum():,} positive reports, "
            f"privatized in {time.perf_counter() - started:.1f} s"
        )
        reports = reports.reshape(shape)
        for kind, data in (
            ("ours", cv.PrivatizedCounts(reports, np.exp(-1.0))),
            ("naive", cv.NaiveCounts(reports)),
        ):
            started = time.perf_counter()
            fit = cv.TensorModel(
                25, modes=modes, likelihood="poisson", chains=2, tune=200, draws=100, seed=1, progress=False
            ).fit(data)
            seconds = time.perf_counter() - started
            rate = fit.rate().to_numpy()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
            print(
                f"  {kind}: {seconds:.0f} s for 2 x 300 sweeps, two chains on {available_threads()} threads; "
                f"MAE {np.abs(rate - counts).mean():.4f}; "
                f"log score {cv.evaluation.log_score(counts, rate):.3f}; peak so far {peak:.2f} GiB"
            )
            if kind == "ours":
                for mode in modes:
                    print(fit.top_entries(mode, 3).head(9).round(3).to_string(index=False))
        print(f"  zero predictor: MAE {counts.mean():.4f}", flush=True)


def theta(_: Path) -> None:
    """Theta drawn given the true phi at several noise levels, against the truth, and from the true counts."""
    rng, n_rows, n_columns, n = np.random.default_rng(1), 400, 200, 5
    phi = rng.dirichlet(np.full(n_columns, 0.2), n).T
    true = rng.gamma(0.3, 200.0, (n_rows, n))
    counts = rng.poisson(true @ phi.T)
    figure = new_figure(12.0, 3.4)
    for axes, p in zip(figure.subplots(1, 4, sharex=True, sharey=True), (0.1, 0.25, 0.5, 0.9), strict=True):
        noise = rng.geometric(1 - p, counts.shape) - rng.geometric(1 - p, counts.shape)
        for label, data, colour in (
            ("naive", cv.NaiveCounts(counts + noise), "#D55E00"),
            ("countveil", cv.PrivatizedCounts(counts + noise, p), "#0072B2"),
        ):
            fit = cv.PoissonFactorization(
                "dk,vk->dv", {"k": n}, names=("theta", "phi"), fixed={"phi": phi}, priors={"theta": (0.3, 0.005)},
                chains=2, tune=200, draws=200, seed=1, progress=False,
            ).fit(data)  # fmt: skip
            draws = fit.posterior["posterior"]["theta"]
            mean = draws.mean(("chain", "draw")).to_numpy()
            low, high = np.quantile(draws.to_numpy(), [0.05, 0.95], axis=(0, 1))
            cover = ((low <= true) & (true <= high)).mean()
            print(
                f"p = {p}, {label}: mean error {np.abs(mean - true).mean():.2f} of a mean of {true.mean():.1f}; "
                f"the middle 90% of draws hold {cover:.3f} of the true values"
            )
            axes.plot(true.ravel(), mean.ravel(), ".", color=colour, markersize=3, label=label, alpha=0.6)
        axes.plot([0, true.max()], [0, true.max()], color="black", linewidth=0.8)
        axes.set_title(f"p = {p}", fontsize=10)
        axes.set_xlabel("true theta")
    figure.axes[0].set_ylabel("posterior mean given phi")
    figure.axes[0].legend(frameon=False, markerscale=3)
    figure.savefig("theta-given-phi.png", dpi=150)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("sweeps", "links", "tensors", "theta"):
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    globals()[sys.argv[1]](Path(sys.argv[2] if len(sys.argv) > 2 else "."))
