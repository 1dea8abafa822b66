"""Draws of NumPy's generator that take long to compile, as subroutines: whatever calls them finds them on disk."""

from countveil.kernels.compiled import subroutine


@subroutine
def binomial(trials, chance, rng):
    """Binomial(trials, chance)."""
    return rng.binomial(trials, chance)


@subroutine
def standard_gamma(shape, rng):
    """Gamma(shape, 1)."""
    return rng.standard_gamma(shape)


@subroutine
def standard_exponential(rng):
    """Exponential(1)."""
    return rng.standard_exponential()


@subroutine
def standard_normal(rng):
    """Normal(0, 1)."""
    return rng.standard_normal()
