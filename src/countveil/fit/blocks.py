"""BlockModel: communities of actors whose contacts were only ever seen through noise."""

import math
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from countveil.common.parameters import Flag, WholeOrAuto, declared
from countveil.data.networks import is_graph
from countveil.data.observations import ExactCounts, Observations, PrivatizedCounts
from countveil.data.release_files import ReleaseFiles
from countveil.fit.base import FactorizationEstimator
from countveil.fit.choosing import chosen_likelihood, size_of
from countveil.fit.effects import Effects
from countveil.fit.rows import Formula, with_covariates
from countveil.kernels.entries import MASKED
from countveil.models.einsum import Spec, parse_spec
from countveil.models.factorization import Factorization, factorization
from countveil.models.layout import Layout, Part

BY_CHANCE = 1e-6  # how seldom a directed network may be taken for an undirected one

COMMUNITIES = Part(
    "community",
    "communities",
    whole="all expected messages",
    measure="share of the community",
    heading="strongest actors: share of the community",
)


@declared
class BlockModel(FactorizationEstimator):
    """Communities of actors, from counts of what they sent each other that were only ever seen through noise.

    Counts have the rates sum_cd theta_ic pi_cd theta_jd, with gamma priors: a mixed-membership stochastic block model
    (Schein et al. 2019, section 5). They are Poisson counts, or come in bursts at that rate (``likelihood``). In the
    posterior each community's memberships theta_c sum to one over actors, and pi_cd is the expected number of messages,
    or of bursts of messages, from community c to community d, including what actors would send to themselves; without
    direction, pi_cd is the number between two communities, and pi_cc is twice that within one.

    Args:
        n_communities: number of communities C, or "auto", as for ``TopicModel``.
        directed: whether (i, j) and (j, i) are counts of their own. If not, each pair is seen once, above the
            diagonal, and pi is symmetric.
        self_loops: whether counts of actors with themselves are part of the data ("gibbs" and "augmented-gibbs" only).
        prevalence: a formula of covariates of the actors, such as "~ grade", which ``fit`` takes as ``covariates``: how
            many messages are expected of an actor as a member of each community then depends on them (``effects``).
        **options: the options of all models, listed by the reference and ``help``.

    Data are square; row and column labels have to be the same. With ``alpha`` (0 for true counts), networkx graphs are
    accepted as plain arrays are. Graphs, and releases that say of what network they are, must be directed if and only
    if the model is.

    Attributes:
        posterior: theta (actor, community), pi (community, community_to); rates have (sender, receiver).
        memberships_: (actors, C) posterior means.
        blocks_: (C, C) posterior means of pi in messages.
    """

    n_communities: Annotated[int | str, WholeOrAuto()] = 5
    _: KW_ONLY
    directed: Annotated[bool, Flag()] = True
    self_loops: Annotated[bool, Flag()] = False
    prevalence: Annotated[str | None, Formula()] = None

    _sized_by: ClassVar[tuple[str, str] | None] = "n_communities", "c"

    def _spec(self, n_modes: int) -> Spec:
        return parse_spec(
            "ic,jd,cd->ij",
            names=("theta", "theta_to", "pi"),
            shared={"theta_to": "theta"},
            symmetric=() if self.directed else ("pi",),
        )

    def _ranks(self, spec: Spec) -> dict[str, int]:
        return {"c": size_of(self), "d": size_of(self)}

    def _layout(self, spec: Spec) -> Layout:
        dims = {"i": "sender", "j": "receiver", "c": "community", "d": "community_to"}
        return Layout(dims, {"theta": "ic", "pi": "cd"}, {"sender": "actor"}, parts={"c": COMMUNITIES})

    def _bursty_by_column(self) -> bool:
        return bool(self.directed)  # an undirected pair belongs to both actors' columns

    def _priors(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> dict[str, Any]:
        priors = super()._priors(spec, sizes, mean_count)
        return priors if self.covariates_ is None else with_covariates(self, priors, "theta")

    def _observe(self, X: Any) -> Observations | ReleaseFiles:
        if isinstance(X, ReleaseFiles):
            raise ValueError("X must be a network in memory, got ReleaseFiles: pass cv.Release.load(path)")
        observations = self._observe_graph(X) if is_graph(X) else super()._observe(X)
        assert isinstance(observations, Observations)
        n_rows, n_columns = observations.shape
        if n_rows != n_columns:
            raise ValueError(f"X must be square, one row and one column per actor, got {n_rows} x {n_columns}")
        rows, columns = observations.row_labels, observations.column_labels
        if rows is not None and columns is not None and rows != columns:
            first = next(i for i, (a, b) in enumerate(zip(rows, columns, strict=True)) if a != b)
            raise ValueError(
                "X must have the same actors as rows and as columns, "
                f"got {rows[first]!r} and {columns[first]!r} at {first}"
            )
        check_kind(observations.provenance.directed, bool(self.directed))
        if not self.directed:
            check_above_diagonal(observations)
            left_out = np.tril_indices(n_rows, 0 if not self.self_loops else -1)
            observations = observations.hide(*left_out)
        else:
            check_both_sides(observations)
            if not self.self_loops:
                observations = observations.hide(np.arange(n_rows), np.arange(n_rows))
        actors = rows if rows is not None else columns
        return observations.relabelled(actors, actors)

    def _modelled_cells(self) -> np.ndarray | None:
        if self.directed and self.self_loops:
            return None
        each = np.ones((len(next(iter(self._reader.axes.values()))),) * 2, dtype=bool)
        return ~np.eye(len(each), dtype=bool) if self.directed else np.triu(each, 0 if self.self_loops else 1)

    @property
    def _in_pairs(self) -> bool:
        return not self.directed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def _observe_graph(self, graph: Any) -> Observations:
        """A networkx graph at the noise level of plain arrays."""
        if graph.is_directed() != bool(self.directed):
            kinds = ("an undirected", "a directed")
            raise ValueError(
                f"directed={self.directed} needs {kinds[bool(self.directed)]} graph, "
                f"got {kinds[graph.is_directed()]} one"
            )
        if self.alpha is None:
            raise TypeError(
                "a graph does not carry a noise level: pass ExactCounts.from_graph(graph) for true counts, or "
                f"PrivatizedCounts.from_graph(graph, alpha) for noisy reports; got {type(graph).__name__}"
            )
        if not np.any(self.alpha):
            return ExactCounts.from_graph(graph)
        return PrivatizedCounts.from_graph(graph, self.alpha)

    def _model(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> Factorization:
        priors = self._priors(spec, sizes, mean_count)
        likelihood = chosen_likelihood(self)
        return factorization(spec, sizes, priors, self_loops=self.self_loops, likelihood=likelihood)

    def _adopt(self, tree: xr.DataTree) -> None:
        super()._adopt(tree)
        found = self._reader.network
        assert found is not None
        self.memberships_, self.blocks_ = found.memberships, found.blocks

    def _sizes_by_chain(self) -> np.ndarray:
        """(C, S, communities) what all actors together send and receive as members of each community."""
        pi = self.posterior["posterior"]["pi"].to_numpy().astype(np.float64)
        return np.asarray(pi.sum(axis=2) + pi.sum(axis=3))

    @property
    def effects(self) -> Effects:
        """Tables of what covariates and dates do to components."""
        return Effects(self)

    def top_actors(self, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The n actors with the largest share of each community, by their numbers, with intervals.

        Columns: community, prevalence (its share of all expected messages, sent and received), rank, actor,
        probability, lower, upper. Where intervals are not calibrated: as in ``parts.members``.
        """
        found = self.parts.members("actor", n, interval, uncalibrated=uncalibrated)
        return found.rename(columns={"component": "community", "member": "actor"})

    def communities(self, n: int = 8, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Communities that chains found alike, the best supported first, and what only some of them found.

        Columns as in ``TopicModel.topics``, with community and actor for topic and word.
        """
        found = self.parts.supported("actor", n, interval, uncalibrated=uncalibrated)
        return found.rename(columns={"component": "community", "member": "actor"})


def check_kind(stated: bool | None, directed: bool) -> None:
    """Refuse a network that says of itself that it is of the other kind; None says nothing."""
    if directed and stated is False:
        raise ValueError(
            "X must be a directed network, got an undirected network, which has one count for each pair; "
            "set directed=False (on the command line, --undirected)"
        )
    if stated and not directed:
        raise ValueError(
            "X must be an undirected network, got a directed network, which has a count for each direction; "
            "set directed=True (on the command line, leave --undirected out)"
        )


def check_both_sides(observations: Observations) -> None:
    """Refuse noisy reports of which none below the diagonal is positive, where noise alone would have made some so.

    Reports of undirected pairs are such; as a directed network they would say that no actor ever answered. This is for
    data that do not say what they are.
    """
    o = observations
    if o.provenance.directed is not None:
        return
    rows = o.row_numbers
    if (o.columns < rows).any() or not ((o.columns > rows) & (o.reports > 0)).any():
        return
    unseen = np.log1p(-o.noise.positive_by_noise(np.broadcast_to(o.cell_level, o.shape)))
    if np.tril(unseen, -1).sum() < math.log(BY_CHANCE):
        raise ValueError(
            "X must have directed pairs, got reports only above the diagonal, as in an undirected network; "
            "set directed=False (on the command line, --undirected)"
        )


def check_above_diagonal(observations: Observations) -> None:
    """An undirected network is seen once for each pair: above the diagonal, or the same on both sides."""
    o = observations
    rows = o.row_numbers
    below = (o.columns < rows) & (o.reports > 0)
    if not below.any():
        return
    found = o.cells(o.columns[below], rows[below])[0]
    if (found != o.reports[below]).any():
        bad = int(np.argmax(found != o.reports[below]))
        i, j = int(o.columns[below][bad]), int(rows[below][bad])
        if found[bad] == MASKED:
            raise ValueError(
                f"an undirected network must mask each pair on both sides of the diagonal, got ({i}, {j}) masked and "
                f"({j}, {i}) reported (countveil.data.networks.links_among masks both with directed=False)"
            )
        raise ValueError(
            "an undirected network must report each pair once, above the diagonal: got different reports at "
            f"({i}, {j}) and ({j}, {i}); release the upper triangle (countveil.data.networks.above_diagonal), or set "
            "directed=True"
        )
