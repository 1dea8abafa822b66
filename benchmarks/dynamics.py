"""A sweep of a dynamic model beside one of a static model of the same counts: python benchmarks/dynamics.py.

python benchmarks/dynamics.py [--series 1000] [--steps 300] [--components 20] [--sweeps 40]

Counts are of a planted chain, true ones and with noise at epsilon/N = 1, of mean 1 and 10. Sweeps of both models take
turns in one process, after five of each, with one thread; printed are medians, in ms, and their ratio. The static model
is a product of two factors with learned gamma shapes, as ``TopicModel`` has it.
"""

import argparse
import time

import numpy as np

import countveil as cv
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.streams import Streams
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.models.factorization import factorization, typical_priors
from countveil.models.priors import DirichletPrior, GammaChainPrior
from countveil.models.spec import axis_sizes, parse_spec

SPEC = parse_spec("tk,vk->tv", names=("activity", "items"))


def planted(steps, series, components, mean, rng):
    """Counts of a chain whose logarithms are random walks."""
    x = np.exp(np.cumsum(rng.normal(0.0, 0.1, (steps, components)), axis=0))
    rates = x @ rng.dirichlet(np.full(series, 0.1), components)
    return rng.poisson(mean / rates.mean() * rates)


def models(shape, components, mean, likelihood):
    """(static, dynamic)."""
    sizes = axis_sizes(SPEC, shape, {"k": components})
    priors = typical_priors(SPEC, sizes, "learned", None, mean)
    chain = GammaChainPrior(mean * shape[1] / components, True)
    moving = {"activity": chain, "items": DirichletPrior(None)}
    return tuple(factorization(SPEC, sizes, each, likelihood=likelihood) for each in (priors, moving))


def medians(data, pair, sweeps):
    """Median milliseconds of a sweep of each model."""
    with ThreadEngine(1) as engine:
        streams = Streams.of_chain(1, 0)
        states = [gibbs.init(data, model, streams, engine) for model in pair]
        taken = [[], []]
        for sweep in range(sweeps + 5):
            for m, model in enumerate(pair):
                started = time.perf_counter()
                states[m], _ = gibbs.step(states[m], data, model, streams, engine)
                if sweep >= 5:
                    taken[m].append(1000.0 * (time.perf_counter() - started))
    return [float(np.median(each)) for each in taken]


def main():
    """Print one line for each kind of counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in {"series": 1000, "steps": 300, "components": 20, "sweeps": 40}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    rng, alpha = np.random.default_rng(1), float(np.exp(-1.0))
    print(f"{'counts':32} {'static':>8} {'dynamic':>8} {'ratio':>6}")
    for mean in (1.0, 10.0):
        counts = planted(given.steps, given.series, given.components, mean, rng)
        noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
        for name, data in {
            "true": cv.ExactCounts(counts),
            "noisy": cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha),
        }.items():
            for likelihood in (POISSON, NegativeBinomial("global")):
                pair = models(counts.shape, given.components, mean, likelihood)
                static, dynamic = medians(data, pair, given.sweeps)
                label = f"{name}, mean {mean:g}, {likelihood.name}"
                print(f"{label:32} {static:8.1f} {dynamic:8.1f} {dynamic / static:6.2f}", flush=True)


if __name__ == "__main__":
    main()
