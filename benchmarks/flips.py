"""Communities of a network whose edges were flipped, against regularised spectral clustering.

python benchmarks/flips.py

Undirected networks of 80 actors in four groups, with edges of probability .35 within and .03 between them. Each edge is
flipped with probability 1 / (1 + e^2) or 1 / (1 + e^3). Printed, for each of five networks, is the normalised mutual
information of the groups and each actor's largest community by posterior means of BlockModel (one chain), of the
same model begun at the groups, and of spectral clustering of the reports (Qin and Rohe 2013).
"""

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

import countveil as cv

ACTORS, GROUPS, WITHIN, BETWEEN = 80, 4, 0.35, 0.03
FIT = {"directed": False, "likelihood": "poisson", "draws": 20, "tune": 100, "chains": 1, "progress": False}


def reported(seed: int, epsilon: float) -> tuple[cv.Reports, np.ndarray, np.ndarray]:
    """(data, reports on both sides, groups)."""
    rng, group = np.random.default_rng(seed), np.arange(ACTORS) % GROUPS
    within = group[:, None] == group
    edges = np.triu(rng.random((ACTORS, ACTORS)) < np.where(within, WITHIN, BETWEEN), 1).astype(int)
    mechanism = cv.mechanisms.RandomisedResponse.keeping(epsilon=epsilon)
    above = np.triu(cv.simulate_reports(edges, mechanism, rng), 1)
    return cv.Reports(above + above.T, mechanism), above + above.T, group


def by_spectrum(reports: np.ndarray, seed: int) -> np.ndarray:
    """Groups by k-means of the leading eigenvectors, with rows of length one."""
    degree = reports.sum(axis=1)
    scale = 1.0 / np.sqrt(degree + degree.mean())
    values, vectors = np.linalg.eigh(reports * np.outer(scale, scale))
    basis = vectors[:, np.argsort(-np.abs(values))[:GROUPS]]
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    return KMeans(GROUPS, n_init=20, random_state=seed).fit_predict(basis)


def largest(fit: cv.BlockModel) -> np.ndarray:
    """The community of which each actor sends and receives most."""
    return (fit.memberships_ * (fit.blocks_.sum(axis=0) + fit.blocks_.sum(axis=1))).argmax(axis=1)


def planted(group: np.ndarray) -> dict[str, np.ndarray]:
    """The groups, as a start."""
    theta = (group[:, None] == np.arange(GROUPS)) + 0.02
    rates = -np.log1p(-np.where(np.eye(GROUPS, dtype=bool), WITHIN, BETWEEN))
    return {"theta": theta / theta.sum(axis=0), "pi": rates * (ACTORS / GROUPS) ** 2}


def main() -> None:
    """The table."""
    print("| epsilon | network | BlockModel | begun at the groups | spectral clustering |", flush=True)
    for epsilon in (2.0, 3.0):
        for seed in range(1, 6):
            data, reports, group = reported(seed, epsilon)
            found = [
                largest(cv.BlockModel(GROUPS, seed=seed, start=start, **FIT).fit(data))
                for start in ("auto", planted(group))
            ]
            scores = [
                normalized_mutual_info_score(group, each) for each in (*found, by_spectrum(reports, seed))
            ]
            print(f"| {epsilon:.0f} | {seed} | {' | '.join(f'{x:.2f}' for x in scores)} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
