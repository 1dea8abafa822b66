"""The laws behind private counts, under SciPy's method names: one law per file, accurate far into the tails."""

from countveil.distributions.bessel import Bessel
from countveil.distributions.privatized_negative_binomial import PrivatizedNegativeBinomial
from countveil.distributions.privatized_poisson import PrivatizedPoisson
from countveil.distributions.skellam import Skellam
from countveil.distributions.two_sided_geometric import TwoSidedGeometric

__all__ = ["Bessel", "PrivatizedNegativeBinomial", "PrivatizedPoisson", "Skellam", "TwoSidedGeometric"]
