"""The laws of reports for NumPyro, with gradients: put them where a model of exact counts has NumPyro's own."""

from countveil.extras import install

try:
    import numpyro.distributions  # noqa: F401
except ImportError as missing:
    raise ImportError(f"countveil.numpyro needs NumPyro: {install('numpyro')}") from missing

from countveil.numpyro.negative_binomial import PrivatizedNegativeBinomial
from countveil.numpyro.poisson import PrivatizedPoisson
from countveil.numpyro.protected import negative_binomial_score, poisson_score

__all__ = ["PrivatizedNegativeBinomial", "PrivatizedPoisson", "negative_binomial_score", "poisson_score"]
