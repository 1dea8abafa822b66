"""The laws of reports for NumPyro, with gradients: put them where a model of exact counts has NumPyro's own."""

from countveil.common.extras import install

try:
    import numpyro.distributions  # noqa: F401
except ImportError as missing:
    raise ImportError(f"countveil.bridges.numpyro needs NumPyro: {install('numpyro')}") from missing

from countveil.bridges.numpyro.negative_binomial import PrivatizedNegativeBinomial
from countveil.bridges.numpyro.poisson import PrivatizedPoisson
from countveil.bridges.numpyro.protected import negative_binomial_score, poisson_score

__all__ = ["PrivatizedNegativeBinomial", "PrivatizedPoisson", "negative_binomial_score", "poisson_score"]
