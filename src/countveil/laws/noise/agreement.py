"""How probable it is that two reports of one count are equal by chance (mathematics, 19.1 and 19.2)."""

from math import ceil

import numpy as np

from countveil.laws.noise.additive import AdditiveLaw
from countveil.laws.noise.laws import law_of
from countveil.privacy.mechanisms import Mechanism

REACH = 12.0  # of the larger spread: beyond, noise adds nothing
STEPS = 10_000  # on each side of zero, at most


def log_agreement(one: Mechanism, other: Mechanism) -> float:
    """The log of P(two reports of a count are equal), of independent noise by each; 0 if it need not change counts.

    Reports with noise of real numbers are taken for rounded to whole ones. Noise with two different means is less often
    equal than stated.
    """
    laws = noise_of(one), noise_of(other)
    if laws[0] is None or laws[1] is None:
        return 0.0
    tau, step = values_around(max(laws[0].spread, laws[1].spread))
    masses = [np.minimum(np.exp(law.log_mass(tau + law.centre)), 1.0) for law in laws if law]
    return float(np.log(min((masses[0] * masses[1]).sum() * step, 1.0)))


def log_most_probable(mechanism: Mechanism) -> float:
    """The log of the probability of the most probable report of a count, at most; 0 if it need not change counts."""
    law = noise_of(mechanism)
    return 0.0 if law is None else min(float(law.log_mass(np.array([float(law.centre)]))[0]), 0.0)


def noise_of(mechanism: Mechanism) -> AdditiveLaw | None:
    """The law of the noise that a mechanism adds; None where it does something else."""
    law = law_of(mechanism)
    return law if isinstance(law, AdditiveLaw) and not law.exact else None


def values_around(spread: float) -> tuple[np.ndarray, int]:
    """(whole numbers around zero, their distance): all within ``REACH`` spreads, or evenly chosen ones."""
    reach = ceil(REACH * spread) + 1
    step = max(1, reach // STEPS)
    return np.arange(-(reach // step) * step, reach + 1, step, dtype=np.float64), step
