"""What all laws share: shapes, arguments that are no whole numbers, seeds, parameters that cannot change."""

import doctest
import importlib

import numpy as np
import pytest

from countveil.distributions import Bessel, PrivatizedPoisson, Skellam, TwoSidedGeometric

LAWS = [
    lambda x: TwoSidedGeometric(x),
    lambda x: Skellam(x, 1.0),
    lambda x: Bessel(2, x),
    lambda x: PrivatizedPoisson(2.0, x),
]
each_law = pytest.mark.parametrize("make", LAWS, ids=["two_sided_geometric", "skellam", "bessel", "privatized"])


@each_law
def test_parameters_and_argument_broadcast(make):
    law = make(np.array([[0.2], [0.7]]))
    for method in (law.pmf, law.logpmf, law.cdf, law.logcdf, law.sf, law.logsf):
        values = method([-1, 0, 3])
        assert values.shape == (2, 3)
        assert values[1, 2] == getattr(make(0.7), method.__name__)(3)
    assert law.shape == (2, 1)
    assert law.mean().shape == law.var().shape == law.std().shape == (2, 1)
    assert isinstance(make(0.5).pmf(1), float)
    assert isinstance(make(0.5).mean(), float)


@each_law
def test_arguments_off_the_whole_numbers(make):
    law = make(0.4)
    assert law.pmf([0.5, np.inf, -np.inf]).tolist() == [0.0, 0.0, 0.0]
    assert law.cdf([1.7, np.inf, -np.inf]).tolist() == [law.cdf(1), 1.0, 0.0]
    assert law.sf([1.7, np.inf, -np.inf]).tolist() == [law.sf(1), 0.0, 1.0]
    assert np.isnan([law.pmf(np.nan), law.cdf(np.nan), law.sf(np.nan)]).all()
    assert law.cdf(1e300) == 1.0
    assert law.sf(1e300) == 0.0


@each_law
def test_draws_have_the_shape_asked_for(make):
    law = make([0.2, 0.7])
    assert law.rvs(random_state=1).shape == (2,)
    assert law.rvs((5, 2), random_state=1).shape == (5, 2)
    assert make(0.5).rvs(4, 1).shape == (4,)
    assert make(0.5).rvs(4, 1).dtype == np.int64
    assert np.ndim(make(0.5).rvs(random_state=1)) == 0
    with pytest.raises(ValueError, match=r"size must be a shape that \(2,\) broadcasts to, got \(3,\)$"):
        law.rvs(3)


@each_law
def test_seeds(make):
    law, rng = make(0.7), np.random.default_rng(1)
    assert (law.rvs(50, 1) == law.rvs(50, rng)).all()
    assert (law.rvs(50, 1) != law.rvs(50, rng)).any()
    assert law.rvs(50).shape == (50,)
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got RandomState$"):
        law.rvs(5, np.random.RandomState(1))


@each_law
def test_parameters_stay_as_they_are(make):
    mine = np.array([0.2, 0.7])
    law = make(mine)
    mine[0] = 0.9
    assert law.pmf(1).tolist() == make([0.2, 0.7]).pmf(1).tolist()
    with pytest.raises(AttributeError, match="immutable, so shape cannot be set"):
        law.shape = (3,)
    with pytest.raises(AttributeError, match="immutable"):
        del law.shape


def test_names_and_values_show():
    assert repr(Skellam(1, 2.5)) == "Skellam(rate1=1.0, rate2=2.5)"
    assert repr(Bessel(3, 2)) == "Bessel(order=3, argument=2.0)"
    assert repr(PrivatizedPoisson(2, [0.1, 0.5])) == "PrivatizedPoisson(rate=2.0, alpha=array([0.1, 0.5]))"
    assert TwoSidedGeometric(0.5).alpha == 0.5
    assert TwoSidedGeometric(0.5).support() == (-np.inf, np.inf)
    with pytest.raises(ValueError, match="read-only"):
        TwoSidedGeometric([0.5, 0.6]).alpha[0] = 0.1


@pytest.mark.parametrize("name", ["bessel", "privatized_poisson", "skellam", "two_sided_geometric"])
def test_examples_run(name):
    results = doctest.testmod(importlib.import_module(f"countveil.distributions.{name}"))
    assert results.attempted > 0
    assert results.failed == 0
