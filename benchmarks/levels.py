"""How often reports show that their noise level is a wrong one, and how often a right one is doubted.

python benchmarks/levels.py [RELEASES]

RELEASES times (200), 10,000 counts with means of .05, .3 or 3, unequal as in sparse data, are given seeded noise whose
alpha is the one that is stated, four fifths of it, or six fifths, with and without negative reports. Printed are the
shares of releases whose fits would say that the reports contradict their level.
"""

import sys

import numpy as np

import countveil as cv
from countveil.data.mechanism_checks import contradiction_of

SIZE = (100, 100)
RELEASES = 200
LEVELS = 1.0, 2.0, 3.0
MEANS = 0.05, 0.3, 3.0
FACTORS = 1.0, 0.8, 1.2


def doubted(level, mean, factor, releases):
    """The shares of signed and of truncated releases that are doubted."""
    rng, stated = np.random.default_rng([int(level), int(100 * mean), int(10 * factor)]), np.exp(-level)
    found = np.zeros(2)
    for _ in range(releases):
        true = rng.poisson(rng.gamma(0.3, mean / 0.3, SIZE))
        noise = rng.geometric(1.0 - factor * stated, (2, *SIZE))
        reports = true + noise[0] - noise[1]
        for i, seen in enumerate((reports, np.maximum(reports, 0))):
            found[i] += contradiction_of(cv.PrivatizedCounts(seen, stated)) is not None
    return found / releases


def main():
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else RELEASES
    print(
        "| epsilon/N | mean count | reports | right alpha | .8 of it | 1.2 of it |\n| - | - | - | - | - | - |"
    )
    for level in LEVELS:
        for mean in MEANS:
            found = np.array([doubted(level, mean, factor, releases) for factor in FACTORS])
            for name, shares in zip(("signed", "truncated"), found.T, strict=True):
                print(
                    f"| {level:g} | {mean:g} | {name} | {' | '.join(f'{s:.1%}' for s in shares)} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
