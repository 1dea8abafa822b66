"""Gamma priors of rows with layers: components of components, by the Poisson gamma belief network."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from countveil.kernels.dynamics import pass_upwards, seat
from countveil.kernels.random import SMALLEST
from countveil.laws.counts.slices import draw_on_slices
from countveil.models.priors.dated_rows import LEVEL_SHAPE, row_scales
from countveil.models.priors.dirichlet import DirichletPrior
from countveil.models.priors.gamma_chain import BOUNDS, CONCENTRATION, WIDTH, log_concentration
from countveil.models.priors.prior import Conditional, Factor, Prior, Reported, check_values

TOP_SHAPE = 0.5  # of those of the top components' shapes
PEAK = 0.5  # of a component's share at the start: the rest is spread over all below
SUM_TOLERANCE = 1e-6  # of the columns of loadings in a file
COLUMNS = DirichletPrior(None)  # of loadings
SHARE, ALIKE = "_share", "_layer_sum"  # ends of names of what is reported


class Layers(NamedTuple):
    """The hyperparameters of rows with layers (mathematics, equation 21.1); the rows' own factor is the first of T."""

    upper: tuple[np.ndarray, ...]  # T - 1 arrays (D, K_t), of the layers t = 2..T
    loadings: tuple[np.ndarray, ...]  # T - 1 arrays (K_(t-1), K_t), whose columns sum to one
    concentrations: np.ndarray  # (T - 1,) eta_t
    top: np.ndarray  # (K_T,) r
    rates: np.ndarray  # (T, D) b_td
    levels: np.ndarray  # (T,) c_t, by which rates are about 1 / c_t
    steadiness: np.ndarray  # (T,) s_t: the larger, the more alike are the rates of rows
    sizes: tuple[np.ndarray, ...]  # T - 1 arrays (K_t,), what the rows have of each: see ``sizes_of``


class Seated(NamedTuple):
    """What the pass upwards leaves for the pass downwards, layer by layer."""

    counts: tuple[np.ndarray, ...]  # T arrays (D, K_t): counts, and tables of the layer below
    exposures: tuple[np.ndarray, ...]  # T arrays (D,)


@dataclass(frozen=True)
class LayeredRowsPrior(Prior):
    """A factor (D, K) with layers above: each is a gamma variable whose shape is a mixture of the next.

        theta_dk ~ Gamma(sum_j phi2_kj theta2_dj, b1_d),   theta2_dj ~ Gamma(sum_l phi3_jl theta3_dl, b2_d),   ...

    The top layer is Gamma(r_l, b_Td). Columns of loadings phi are Dirichlet with a learned concentration. Rates
    b_td ~ Gamma(s_t, s_t c_t) are as alike as rows are. At the start, shapes of the factor are ``mean``, and rows are
    of ``size``; r_l has a broad prior about what this makes of it (mathematics, equation 21.1).
    """

    mean: float
    size: float
    n_upper: tuple[int, ...]  # K_2, ..., K_T

    kind: ClassVar[str] = "gamma-with-layers"
    needs: ClassVar[str | None] = "layers"
    from_data: ClassVar[tuple[str, ...]] = ("size",)

    def n_each(self, n_components: int) -> tuple[int, ...]:
        """K_1, ..., K_T."""
        return n_components, *self.n_upper

    def usual_top(self, n_components: int) -> float:
        """r_0: with all r_l of this size, the shapes of the factor are ``mean`` on average."""
        return self.mean * n_components / self.n_each(n_components)[-1]

    def usual_levels(self, n_components: int) -> np.ndarray:
        """(T,) c_t at which rows are of ``size``, and all layers have the same sums."""
        found = np.ones(len(self.n_upper) + 1)
        found[0] = self.size / (n_components * self.mean)
        return found

    def start(self, factor: Factor) -> np.ndarray:
        """Layers with the same sums, and loadings that are alike but for a peak that breaks the symmetry."""
        (n_rows, k), levels = factor.shape, self.usual_levels(factor.shape[1])
        upper = tuple(np.full((n_rows, n), self.mean * k / n) for n in self.n_upper)
        loadings = tuple(peaked(below, n) for below, n in zip(self.n_each(k), self.n_upper, strict=False))
        layers = Layers(
            upper,
            loadings,
            np.repeat([COLUMNS.start(factor)], len(upper)),
            np.full(self.n_each(k)[-1], self.usual_top(k)),
            np.tile(1.0 / levels[:, None], (1, n_rows)),
            levels,
            np.full(len(levels), CONCENTRATION),
            tuple(np.ones(n) for n in self.n_upper),
        )
        return packed(layers)

    def draw(
        self, factor: Factor, hypers: np.ndarray, given: Conditional, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rates given all layers; tables upwards, each with its layer integrated out; then all layers, from the top."""
        scale, value, count, exposure = given
        layers, scales = self.layers_of(hypers, factor.shape), row_scales(scale, factor.shape[0])
        layers = self.draw_rates(layers, scales, value, rng)
        whole, whole_exposure = completed(value, count, exposure, rng)
        layers, seated = self.pass_upwards(layers, scales, whole, whole_exposure, rng)
        layers, value = self.pass_downwards(layers, scales, seated, rng)
        return value, packed(layers._replace(sizes=sizes_of(layers, value)))

    def draw_rates(self, layers: Layers, scales: np.ndarray, value: np.ndarray, rng: np.random.Generator) -> Layers:
        """b_td given all layers, then c_t given these, then s_t on a slice (mathematics, equation 21.5)."""
        n_rows, k = value.shape
        sums = np.array([scales * value.sum(axis=1), *(each.sum(axis=1) for each in layers.upper)])
        shapes = np.vstack([sums[1:], np.full(n_rows, layers.top.sum())])
        s, c = layers.steadiness[:, None], layers.levels[:, None]
        rates = np.maximum(rng.standard_gamma(s + shapes) / (s * c + sums), SMALLEST)
        broad = LEVEL_SHAPE / self.usual_levels(k) + layers.steadiness * rates.sum(axis=1)
        levels = rng.standard_gamma(LEVEL_SHAPE + n_rows * layers.steadiness) / broad
        levels = np.maximum(levels, SMALLEST)
        log_s = np.log(layers.steadiness)
        for t, each in enumerate(np.maximum(rates * levels[:, None], SMALLEST)):

            def log_density(x: np.ndarray, each: np.ndarray = each) -> np.ndarray:
                return log_concentration(x, each)

            log_s[t : t + 1] = draw_on_slices(log_density, log_s[t : t + 1], BOUNDS, rng, WIDTH)
        return layers._replace(rates=rates, levels=levels, steadiness=np.exp(log_s))

    def pass_upwards(
        self, layers: Layers, scales: np.ndarray, count: np.ndarray, exposure: np.ndarray, rng: np.random.Generator
    ) -> tuple[Layers, Seated]:
        """Tables of every layer, with loadings and the top's shapes given these (mathematics, equations 21.2 and 21.3).

        Counts (D, K) are whole: their exposures (D,) are the same for all components.
        """
        counts, exposures = [count], [exposure]
        loadings, concentrations = list(layers.loadings), layers.concentrations.copy()
        for t, upper in enumerate(layers.upper):
            tables, totals = np.zeros(loadings[t].shape), np.zeros(upper.shape)
            pass_upwards(counts[t], loadings[t], upper, rng, tables, totals)
            counts.append(totals)
            exposures.append(lost(exposures[t], self.rate_of(layers, scales, t)))
            drawn = COLUMNS.draw_given_counts(tables, (0,), concentrations[t : t + 1], rng)
            loadings[t], concentrations[t : t + 1] = drawn
        seated = np.empty(counts[-1].shape)
        shapes = np.tile(layers.top, len(count))
        seat(np.ascontiguousarray(counts[-1]).ravel(), shapes, rng, seated.ravel())
        broad = TOP_SHAPE / self.usual_top(count.shape[1])
        rate = broad + lost(exposures[-1], self.rate_of(layers, scales, len(counts) - 1)).sum()
        top = np.maximum(rng.standard_gamma(TOP_SHAPE + seated.sum(axis=0)) / rate, SMALLEST)
        found = layers._replace(loadings=tuple(loadings), concentrations=concentrations, top=top)
        return found, Seated(tuple(counts), tuple(exposures))

    def pass_downwards(
        self, layers: Layers, scales: np.ndarray, seated: Seated, rng: np.random.Generator
    ) -> tuple[Layers, np.ndarray]:
        """All layers from the top to the rows' factor, given counts and exposures (mathematics, equation 21.4)."""
        found: list[np.ndarray] = []
        for t in reversed(range(len(seated.counts))):
            shape = found[-1] @ layers.loadings[t].T if found else layers.top
            rate = self.rate_of(layers, scales, t) + seated.exposures[t]
            drawn = rng.standard_gamma(shape + seated.counts[t]) / rate[:, None]
            found.append(np.maximum(drawn, SMALLEST))
        value, *upper = found[::-1]
        return layers._replace(upper=tuple(upper)), value

    def rate_of(self, layers: Layers, scales: np.ndarray, t: int) -> np.ndarray:
        """(D,) rates of a layer, counted from 0; known offsets are those of the rows' own."""
        return layers.rates[t] if t else layers.rates[0] * scales

    def layers_of(self, hypers: np.ndarray, shape: tuple[int, ...]) -> Layers:
        """Hyperparameters by name."""
        return Layers(*self.parts_of(hypers, shape))

    def parts_of(self, hypers: np.ndarray, shape: tuple[int, ...]) -> list[Any]:
        """The fields of ``Layers`` from hyperparameters (..., n), each (..., *its shape)."""
        (n_rows, k), lead = shape, hypers.shape[:-1]
        each, n_layers = self.n_each(k), len(self.n_upper) + 1
        pairs = list(zip(each, self.n_upper, strict=False))
        wanted: list[Any] = [[(n_rows, n) for n in self.n_upper], pairs, (n_layers - 1,)]
        wanted += [(each[-1],), (n_layers, n_rows), (n_layers,), (n_layers,), [(n,) for n in self.n_upper]]
        found, first = [], 0
        for own in wanted:
            values = []
            for size in own if isinstance(own, list) else [own]:
                end = first + int(np.prod(size))
                values.append(np.ascontiguousarray(hypers[..., first:end]).reshape(*lead, *size))
                first = end
            found.append(tuple(values) if isinstance(own, list) else values[0])
        return found

    def reported(self, factor: Factor, hypers: np.ndarray) -> Reported:
        """Of each layer above, loadings (below, own) and shares; and how alike the rows are (see ``alike``).

        The dimension of layer t is called ``layert``.
        """
        layers = Layers(*self.parts_of(hypers, factor.shape))
        found: Reported = {}
        below: int | str = 1
        for t, (loadings, sizes) in enumerate(zip(layers.loadings, layers.sizes, strict=True), 2):
            own = layer_called(t)
            shares = sizes / np.maximum(sizes.sum(axis=2, keepdims=True), SMALLEST)
            found |= {f"_{own}": ((below, own), loadings), f"_{own}{SHARE}": ((own,), shares)}
            below = own
        return found | {ALIKE: (("layer",), alike(layers))}

    @property
    def components(self) -> tuple[tuple[str, str, str], ...]:
        """Those of the layers above, from the bottom up."""
        names = [layer_called(t + 2) for t in range(len(self.n_upper))]
        return tuple((f"_{name}", f"_{name}{SHARE}", name) for name in names)

    def summaries(self, factor: Factor, hypers: np.ndarray) -> list[np.ndarray]:
        """How alike the rows are."""
        return [alike(Layers(*self.parts_of(hypers, factor.shape)))]

    def check_reported(self, name: str, values: np.ndarray) -> None:
        """Numbers from 0 on, and loadings and shares sum to one."""
        finite = (values >= 0.0) & (values < np.inf)
        check_values(f"must hold finite numbers, 0 or more, at {name}", values, finite)
        if not name.endswith(ALIKE):
            sums = values.sum(axis=2)
            whole = np.abs(sums - 1.0) <= SUM_TOLERANCE
            check_values(f"must hold {name} with sums of 1 over each component", sums, whole)

    def describe(self) -> str:
        """The sizes of layers."""
        sizes = " and ".join(map(str, self.n_upper))
        above = f"{sizes} components" if len(self.n_upper) == 1 else f"layers of {sizes} components"
        return f"Gammas whose shapes are mixtures of {above} above, with learned rates (mathematics, section 21)."

    def facts(self) -> dict[str, Any]:
        """The numbers that it takes."""
        return {"kind": self.kind, "mean": self.mean, "size": self.size, "n_upper": list(self.n_upper)}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """The prior that ``facts`` described."""
        return cls(facts["mean"], facts["size"], tuple(map(int, facts["n_upper"])))


def layer_called(t: int) -> str:
    """The dimension of layer t, from 2 on."""
    return f"layer{t}"


def alike(layers: Layers) -> np.ndarray:
    """(..., T) the mean over rows of the sum of each layer's shapes: the larger, the nearer it is to what is above."""
    sums = [each.sum(axis=-1).mean(axis=-1) for each in layers.upper]
    return np.stack([*sums, layers.top.sum(axis=-1)], axis=-1)


def completed(
    value: np.ndarray, count: np.ndarray, exposure: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(counts (D, K), exposures (D,)), of each row to its largest exposure (mathematics, equation 17.2)."""
    whole = exposure.max(axis=1)
    return count + rng.poisson((whole[:, None] - exposure) * value), whole


def lost(exposure: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """(D,) the exposure of a layer's shapes once it is integrated out (mathematics, equation 21.2)."""
    return np.log1p(exposure / rate)


def sizes_of(layers: Layers, value: np.ndarray) -> tuple[np.ndarray, ...]:
    """What all rows together have of the components of each layer above (mathematics, equation 21.6)."""
    sums = value.sum(axis=1)
    return tuple((sums / np.maximum(each.sum(axis=1), SMALLEST)) @ each for each in layers.upper)


def peaked(n_below: int, n: int) -> np.ndarray:
    """(below, n) loadings whose columns sum to one, where every component below is mostly that of one above."""
    found = np.full((n_below, n), (1.0 - PEAK) / n_below)
    for j in range(n):
        own = np.arange(n_below) % n == j if n <= n_below else np.arange(n_below) == j % n_below
        found[own, j] += PEAK / own.sum()
    return found


def packed(layers: Layers) -> np.ndarray:
    """Hyperparameters as one vector."""
    every: list[np.ndarray] = []
    for part in layers:
        every += part if isinstance(part, tuple) else [part]
    return np.concatenate([np.ravel(each) for each in every])
