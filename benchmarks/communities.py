"""Communities and hidden links of networks that were reported with noise, against methods that do not know the noise.

python benchmarks/communities.py flips
python benchmarks/communities.py levels
python benchmarks/communities.py weights
python benchmarks/communities.py links FOLDER

Undirected networks of 80 actors in four groups. Edges have probability .35 within and .03 between groups, and each is
flipped with probability 1 / (1 + e^2) or 1 / (1 + e^3). Counts have means 1 within and .1 between groups, times the
activities of both actors where these differ (gamma of shape 2 and mean 1), and two-sided geometric noise at
epsilon/N = .5, 1 or 2. Printed, for each of five networks, is the normalised mutual information of the groups and each
actor's largest community by posterior means of BlockModel (one chain), of the same model begun at the groups, and of
spectral clustering of the reports (Qin and Rohe 2013).

``weights`` has counts in the hundreds: means 300 within and 200 between groups, times activities, negative binomial
with a variance of the mean plus half its square, and noise at epsilon/N = 1 or 2. BlockModel has its default settings.
Printed are also the share of pairs whose 90% interval covers the true count, and the share whose expected count is
covered.

``links`` masks a tenth of all ordered pairs of Enron's network (FOLDER/enron_network/enron161.npz) and ranks them by
the expected count by a default BlockModel(10), and by rules that take reports below zero for zero: reports that both
actors share with others (common neighbours), the sender's sum times the receiver's, and the report in reverse. Printed,
for each of three noise draws, is the share of masked pairs with mail, which is what predicting zero for all pairs
amounts to; the same share of the hundred pairs that are ranked first (precision at 100), and the area under the ROC
curve.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score

import countveil as cv
from countveil.laws.counts.protocol import parameters_of_rows

ACTORS, GROUPS, WITHIN, BETWEEN = 80, 4, 0.35, 0.03
COUNTS = 1.0, 0.1  # means within and between groups
WEIGHTS, SHAPE = (300.0, 200.0), 2.0  # means within and between groups, and the shape of their gamma mixtures
ACTIVITY = 2.0  # gamma shape
DRAWS = 200  # of expected counts, at most
HIDDEN, FIRST = 0.1, 100  # share of pairs, and how many of them are ranked first
FIT = {"directed": False, "likelihood": "poisson", "draws": 20, "tune": 100, "chains": 1, "progress": False}


def reported(seed: int, epsilon: float) -> tuple[cv.Reports, np.ndarray, np.ndarray]:
    """(data, reports on both sides, groups)."""
    rng, group = np.random.default_rng(seed), np.arange(ACTORS) % GROUPS
    within = group[:, None] == group
    edges = np.triu(rng.random((ACTORS, ACTORS)) < np.where(within, WITHIN, BETWEEN), 1).astype(int)
    mechanism = cv.mechanisms.RandomisedResponse.keeping(epsilon=epsilon)
    above = np.triu(cv.simulate_reports(edges, mechanism, rng), 1)
    return cv.Reports(above + above.T, mechanism), above + above.T, group


def counted(seed: int, level: float, differ: bool) -> tuple[cv.PrivatizedCounts, np.ndarray, np.ndarray]:
    """The same of counts, between actors whose activities ``differ``."""
    rng, group = np.random.default_rng(seed), np.arange(ACTORS) % GROUPS
    activity = rng.gamma(ACTIVITY, 1.0 / ACTIVITY, ACTORS) if differ else np.ones(ACTORS)
    mean = np.where(group[:, None] == group, *COUNTS) * np.outer(activity, activity)
    alpha = np.exp(-level)
    noise = rng.geometric(1.0 - alpha, mean.shape) - rng.geometric(1.0 - alpha, mean.shape)
    above = np.triu(rng.poisson(mean) + noise, 1)
    return cv.PrivatizedCounts(above + above.T, alpha), above + above.T, group


def weighted(seed: int, level: float, differ: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(true counts, their means, reports, groups), above the diagonal and below."""
    rng, group = np.random.default_rng(seed), np.arange(ACTORS) % GROUPS
    activity = rng.gamma(ACTIVITY, 1.0 / ACTIVITY, ACTORS) if differ else np.ones(ACTORS)
    mean = np.where(group[:, None] == group, *WEIGHTS) * np.outer(activity, activity)
    counts = np.triu(rng.poisson(mean * rng.gamma(SHAPE, 1.0 / SHAPE, mean.shape)), 1)
    alpha = np.exp(-level)
    noise = rng.geometric(1.0 - alpha, mean.shape) - rng.geometric(1.0 - alpha, mean.shape)
    above = np.triu(counts + noise, 1)
    return counts + counts.T, mean, above + above.T, group


def expected(fit: cv.BlockModel) -> list[np.ndarray]:
    """Expected counts of all pairs by each of some draws."""
    likelihood, actors = fit.model_.likelihood, np.arange(ACTORS)
    return [
        likelihood.mean(rows @ columns.T, parameters_of_rows(likelihood, parameters, actors))
        for (rows, columns), parameters in fit._reader.even_draws(DRAWS)
    ]


def weights() -> None:
    """The table of counts in the hundreds."""
    print("reports,network,BlockModel,spectral clustering,counts covered,expected counts covered", flush=True)
    pairs = np.triu_indices(ACTORS, 1)
    for differ in (False, True):
        for level in (1.0, 2.0):
            for seed in range(1, 6):
                counts, mean, reports, group = weighted(seed, level, differ)
                data = cv.PrivatizedCounts(reports, np.exp(-level))
                fit = cv.BlockModel(GROUPS, directed=False, seed=seed, progress=False).fit(data)
                found = [
                    normalized_mutual_info_score(group, each) for each in (largest(fit), by_spectrum(reports, seed))
                ]
                table = fit.count_intervals(data)
                within = (table["lower"].to_numpy() <= counts) & (counts <= table["upper"].to_numpy())
                low, high = np.quantile(expected(fit), (0.05, 0.95), axis=0)
                found += [within[pairs].mean(), ((low <= mean) & (mean <= high))[pairs].mean()]
                name = f"{'different' if differ else 'equal'} activities, level {level:g}"
                print(f'"{name}",{seed},{",".join(f"{x:.2f}" for x in found)}', flush=True)


def by_spectrum(reports: np.ndarray, seed: int) -> np.ndarray:
    """Groups by k-means of the leading eigenvectors, with rows of length one."""
    degree = np.maximum(reports.sum(axis=1), 0)
    scale = 1.0 / np.sqrt(degree + degree.mean())
    values, vectors = np.linalg.eigh(reports * np.outer(scale, scale))
    basis = vectors[:, np.argsort(-np.abs(values))[:GROUPS]]
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    return KMeans(GROUPS, n_init=20, random_state=seed).fit_predict(basis)


def largest(fit: cv.BlockModel) -> np.ndarray:
    """The community of which each actor sends and receives most."""
    return (fit.memberships_ * (fit.blocks_.sum(axis=0) + fit.blocks_.sum(axis=1))).argmax(axis=1)


def planted(group: np.ndarray, rates: tuple[float, float]) -> dict[str, np.ndarray]:
    """The groups, as a start."""
    theta = (group[:, None] == np.arange(GROUPS)) + 0.02
    return {
        "theta": theta / theta.sum(axis=0),
        "pi": np.where(np.eye(GROUPS, dtype=bool), *rates) * (ACTORS / GROUPS) ** 2,
    }


def links(folder: Path) -> None:
    """The table of hidden links."""
    counts = np.load(folder / "enron_network" / "enron161.npz")["Y"].astype(int)
    print("level,noise draw,ranked by,share with mail,precision at 100,area under the curve", flush=True)
    for level in (1.0, 2.0):
        for draw in range(3):
            rng, alpha = np.random.default_rng([draw, round(level)]), np.exp(-level)
            reports = counts + rng.geometric(1.0 - alpha, counts.shape) - rng.geometric(1.0 - alpha, counts.shape)
            pairs = ~np.eye(len(counts), dtype=bool)
            hidden = pairs & (rng.random(counts.shape) < HIDDEN)
            fit = cv.BlockModel(10, seed=draw, progress=False)
            fit.fit(cv.PrivatizedCounts(np.where(hidden, 0, reports), alpha, hidden | ~pairs))
            seen = np.where(pairs & ~hidden, np.maximum(reports, 0), 0)
            ranks = {
                "BlockModel": fit.rate().to_numpy(),
                "common neighbours": (seen + seen.T) @ (seen + seen.T),
                "sums of both": np.outer(seen.sum(axis=1), seen.sum(axis=0)),
                "the report in reverse": seen.T,
            }
            mail = counts[hidden] > 0
            for name, rank in ranks.items():
                score = rank[hidden] + 1e-9 * rng.random(mail.size)  # ties in any order
                first = mail[np.argsort(-score)[:FIRST]].mean()
                found = f"{mail.mean():.3f},{first:.2f},{roc_auc_score(mail, score):.3f}"
                print(f'{level:g},{draw},"{name}",{found}', flush=True)


def main(kinds: list[str]) -> None:
    """The table of communities."""
    cases = {}
    if "flips" in kinds:
        rates = -np.log1p(-WITHIN), -np.log1p(-BETWEEN)
        cases |= {f"flips, epsilon {e:.0f}": (lambda seed, e=e: reported(seed, e), rates) for e in (2.0, 3.0)}
    if "levels" in kinds:
        for differ in (False, True):
            name = "different activities" if differ else "equal activities"
            cases |= {
                f"{name}, level {level:g}": (lambda seed, a=level, b=differ: counted(seed, a, b), COUNTS)
                for level in (0.5, 1.0, 2.0)
            }
    print("reports,network,BlockModel,begun at the groups,spectral clustering", flush=True)
    for case, (read, rates) in cases.items():
        for seed in range(1, 6):
            data, reports, group = read(seed)
            found = [
                largest(cv.BlockModel(GROUPS, seed=seed, start=start, **FIT).fit(data))
                for start in ("auto", planted(group, rates))
            ]
            scores = [normalized_mutual_info_score(group, each) for each in (*found, by_spectrum(reports, seed))]
            print(f'"{case}",{seed},{",".join(f"{x:.2f}" for x in scores)}', flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["links"]:
        links(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["weights"]:
        weights()
    else:
        main(sys.argv[1:] or ["flips", "levels"])
