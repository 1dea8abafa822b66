"""Effects of an experiment on topics, beside those that the package stm found: answers without noise.

    python benchmarks/answers.py FOLDER

FOLDER has two files. gadarian_dtm_rebuilt.npz: count (341, 215), vocab, treatment and pid_rep, from Gadarian and
Albertson's experiment, whose answers are about what worries people about immigration. gadarianFit.npz: stm's fit of
three topics, theta (341, 3), logbeta (3, 215), vocab and X. Printed are the differences between the treated and the
rest in the topics' shares: in stm's theta; expected by a fit that is given stm's topics; and by a fit of its own ones.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import countveil as cv

SHORT = {"draws": 250, "tune": 250, "chains": 4, "seed": 1, "progress": False}


def contrasts(counts: pd.DataFrame, people: pd.DataFrame, **how: object) -> str:
    """Treated less control, with 90% intervals, topic by topic."""
    fit = cv.TopicModel(3, prevalence="~ treatment * pid", **SHORT, **how)
    fit.fit(cv.ExactCounts(counts), covariates=people)
    found = fit.contrast({"treatment": 1.0}, {"treatment": 0.0}, uncalibrated=True).set_index("topic")
    ends = found.columns[found.columns.str.endswith(("lower", "upper"))]
    return ", ".join(
        f"{row.estimate:+.3f} ({row[ends[0]]:+.3f} to {row[ends[1]]:+.3f})"
        for _, row in found.sort_index().iterrows()
    )


def main(folder: Path) -> None:
    """Print all three."""
    with np.load(folder / "gadarian_dtm_rebuilt.npz", allow_pickle=False) as file:
        counts = pd.DataFrame(file["count"], columns=list(map(str, file["vocab"])))
        people = pd.DataFrame({"treatment": file["treatment"], "pid": file["pid_rep"]})
    with np.load(folder / "gadarianFit.npz", allow_pickle=False) as file:
        topics = pd.DataFrame(np.exp(file["logbeta"]), columns=list(map(str, file["vocab"])))
        theta, treated = file["theta"], file["X"][:, 1] == 1.0
    print("stm:", ", ".join(f"{d:+.3f}" for d in theta[treated].mean(axis=0) - theta[~treated].mean(axis=0)))
    print("given stm's topics:", contrasts(counts, people, known_topics=topics), flush=True)
    print("topics of its own:", contrasts(counts, people), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
