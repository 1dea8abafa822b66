"""Checks of section 6: counts and exposures carried through an einsum of factors."""

from itertools import product

import numpy as np
from scipy import special, stats

from countveil.inference.factors import expected_counts
from countveil.kernels.shared import sample_tilted_gamma
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior
from tests.formulas.arrays import A, B
from tests.formulas.brute import formula, gamma_logpdf, same, slope


def communities():
    """theta (3, 2) and pi (2, 2)."""
    rng = np.random.default_rng(4)
    return rng.gamma(2.0, 0.6, (3, 2)), rng.gamma(2.0, 0.6, (2, 2))


@formula("6.1")
def rate_by_pairs():
    r"""\mu_{ij} = \sum_{cd} \theta_{ic} \pi_{cd} \theta_{jd} = \sum_d A_{id} \theta_{jd}, \quad A_{id} = \sum_c
    \theta_{ic} \pi_{cd}
    """
    theta, pi = communities()
    brute = np.zeros((3, 3))
    for i, j, c, d in product(range(3), range(3), range(2), range(2)):
        brute[i, j] += theta[i, c] * pi[c, d] * theta[j, d]
    same((theta @ pi) @ theta.T, brute)
    rows, columns = network_model().matrices((theta, pi))
    same(rows @ columns.T, brute)


def network_model():
    """The library's model of three actors in two communities, self-loops included."""
    spec = parse_spec("ic,jd,cd->ij", names=("theta", "theta_to", "pi"), shared={"theta_to": "theta"})
    sizes = axis_sizes(spec, (3, 3), {"c": 2, "d": 2})
    prior = GammaPrior(A, B, False)
    return factorization(spec, sizes, {"theta": prior, "pi": prior}, self_loops=True)


def multinomial_tables(n, shares):
    """(table, chance) of every way to split n over the shares."""
    size = len(shares)
    for table in product(range(n + 1), repeat=size):
        if sum(table) == n:
            yield np.array(table), float(stats.multinomial.pmf(table, n, shares / shares.sum()))


def in_two_steps(counts, i=0):
    """Law of n_icd by (6.2) and (6.3) for actor i's counts to actors 1 and 2."""
    theta, pi = communities()
    a, found = theta[i] @ pi, {}
    for choice in product(*[list(multinomial_tables(n, a * theta[j])) for j, n in enumerate(counts, start=1)]):
        n_d, chance = sum(t for t, _ in choice), np.prod([c for _, c in choice])
        for split in product(*[list(multinomial_tables(n_d[d], theta[i] * pi[:, d])) for d in range(2)]):
            key = tuple(np.stack([t for t, _ in split], axis=1).ravel())
            found[key] = found.get(key, 0.0) + chance * split[0][1] * split[1][1]
    return found


def at_once(counts, i=0):
    """Law of n_icd when every y_ij splits over all pairs (c, d)."""
    theta, pi = communities()
    found = {}
    shares = [(theta[i][:, None] * pi * theta[j]).ravel() for j in (1, 2)]
    for choice in product(*[list(multinomial_tables(n, s)) for n, s in zip(counts, shares, strict=True)]):
        key = tuple(sum(t for t, _ in choice))
        found[key] = found.get(key, 0.0) + np.prod([c for _, c in choice])
    return found


def check_splits(counts):
    """Both laws are one, and the library expects their means."""
    one, other = in_two_steps(counts), at_once(counts)
    assert one.keys() == other.keys()
    same([one[key] for key in one], [other[key] for key in one], 1e-9)
    theta, pi = communities()
    model = network_model()
    y = np.zeros((3, 3))
    y[0, 1:] = counts
    values = model.columns.forward((theta, pi))
    ratio = (y / (theta @ pi @ theta.T)).T @ model.rows.matrix(model.rows.forward((theta, pi)))
    found = expected_counts(model.columns, values, ratio)
    use = next(u for u, each in enumerate(model.columns.uses) if model.factors[each.factor].name == "pi")
    same(found[use].ravel(), sum(np.array(key) * chance for key, chance in one.items()))


@formula("6.2")
def split_towards_receivers():
    r"""y_{ij1}, \ldots, y_{ijD} \mid y_{ij} \sim \mathrm{Multinomial}\left( y_{ij}; \frac{A_{i1}
    \theta_{j1}}{\mu_{ij}}, \ldots, \frac{A_{iD} \theta_{jD}}{\mu_{ij}} \right), \quad n_{id} = \sum_j
    y_{ijd}
    """
    check_splits((2, 3))


@formula("6.3")
def split_towards_senders():
    r"""n_{i1d}, \ldots, n_{iCd} \mid n_{id} \sim \mathrm{Multinomial}\left( n_{id}; \frac{\theta_{i1}
    \pi_{1d}}{A_{id}}, \ldots, \frac{\theta_{iC} \pi_{Cd}}{A_{id}} \right)
    """
    check_splits((4, 1))


def network_joint(theta, pi, y_cd, e):
    """log of the joint density of counts of all pairs (c, d) and all factors, with exposures e."""
    rates = np.einsum("ic,cd,jd->ijcd", theta, pi, theta)
    seen = e > 0
    each = special.xlogy(y_cd, rates) - special.gammaln(y_cd + 1.0)
    total = each[seen].sum() - (e[..., None, None] * rates).sum()
    return float(total + gamma_logpdf(theta, A, B).sum() + gamma_logpdf(pi, A, B).sum())


def network_counts(e, seed=6):
    """Counts of all pairs (c, d) where a cell is exposed."""
    theta, pi = communities()
    rates = np.einsum("ic,cd,jd->ijcd", theta, pi, theta)
    return np.random.default_rng(seed).poisson(rates) * (e > 0)[..., None, None]


@formula("6.4")
def any_entry():
    r"""x \mid \text{all else} \sim \mathrm{Gamma}\Big( a + \text{counts allocated to } x, \; b + \sum_i e_i
    \frac{\partial \mu_i}{\partial x} \Big)
    """
    theta, pi = communities()
    e = np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.0], [0.4, 1.0, 0.0]])  # no self-loops, a masked cell
    y_cd, x = network_counts(e), np.linspace(0.1, 3.0, 7)
    for name in ("pi", "theta"):
        fell = y_cd[:, :, 0, 1].sum() if name == "pi" else y_cd[0, :, 1].sum() + y_cd[:, 0, :, 1].sum()
        brute = []

        def with_entry(value, name=name):
            changed = (theta.copy(), pi.copy())
            changed[name == "pi"][0, 1] = value
            return changed

        def exposed(value, with_entry=with_entry):
            t, p = with_entry(value)
            return float((e * (t @ p @ t.T)).sum())

        for value in x:
            brute.append(network_joint(*with_entry(value), y_cd, e))
        difference = np.array(brute) - gamma_logpdf(x, A + fell, B + slope(exposed, 1.0))
        same(difference, np.full(7, difference[0]), 1e-8)


@formula("6.5")
def actor_with_a_self_loop():
    r"""\begin{aligned} p(\theta_{ic} \mid \text{all else}) & = \text{const} \; \theta_{ic}^{a + n - 1} \exp(-t
    \, \theta_{ic} - e_{ii} \pi_{cc} \theta_{ic}^2), \cr t & = b + \sum_{j \ne i, \, d} (e_{ij} \pi_{cd} +
    e_{ji} \pi_{dc}) \, \theta_{jd} + e_{ii} \sum_{d \ne c} (\pi_{cd} + \pi_{dc}) \, \theta_{id}
    \end{aligned}
    """
    theta, pi = communities()
    e = np.array([[0.4, 1.0, 0.4], [1.0, 1.0, 0.0], [0.4, 1.0, 1.0]])
    y_cd, i, c = network_counts(e), 0, 1
    n = y_cd[i, :, c].sum() + y_cd[:, i, :, c].sum()
    t = B + e[i, i] * (pi[c, 0] + pi[0, c]) * theta[i, 0]
    for j, d in product((1, 2), range(2)):
        t += (e[i, j] * pi[c, d] + e[j, i] * pi[d, c]) * theta[j, d]
    x = np.linspace(0.1, 3.0, 7)
    brute = []
    for value in x:
        changed = theta.copy()
        changed[i, c] = value
        brute.append(network_joint(changed, pi, y_cd, e))
    printed = (A + n - 1) * np.log(x) - t * x - e[i, i] * pi[c, c] * x**2
    same(np.array(brute) - printed, np.full(7, brute[0] - printed[0]), 1e-8)
    rng, square = np.random.default_rng(2), e[i, i] * pi[c, c]
    drawn = np.array([sample_tilted_gamma(A + n, t, square, rng) for _ in range(4000)])
    grid = np.linspace(1e-4, 12.0, 20_000)
    density = np.exp((A + n - 1) * np.log(grid) - t * grid - square * grid**2)
    mean, second = (density @ grid**power / density.sum() for power in (1, 2))
    assert abs(drawn.mean() - mean) < 4 * np.sqrt((second - mean**2) / 4000)
