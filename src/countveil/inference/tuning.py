"""How chains were started and tuned: the starts that they chose among, their moves, and their log-likelihoods.

Starts and moves note what they do in the record of the chain that they work for, which is found by the thread that runs
it: whoever computes blocks for a chain notes nothing. Where no chain is recorded, as in optimisers, notes are lost.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

GROUP = "tuning"  # of a fit's tree; not there in fits without chains, and in older ones
EMBEDDINGS, GROUPINGS, BEGINNINGS, GIVEN = "embeddings", "groupings", "beginnings", "given"
RACES = EMBEDDINGS, GROUPINGS, BEGINNINGS, GIVEN
"""What a chain's start chose among; given sets of factors are chosen at random, and have no score."""
CHAIN_VARIABLES = "components", "started", "tuned"
MOVE_VARIABLES = "sweep", "before", "after", "log_likelihood"
CANDIDATE_VARIABLES = "number", "rounds", "score", "taken"


class Candidate(NamedTuple):
    """One of the starts that a chain chose among."""

    race: str  # one of RACES
    number: int  # in its race, from 1 on
    rounds: int  # after how many it was dropped or taken
    score: float  # in the last of these; NaN for what was chosen at random
    taken: int  # 1 for the one that went on


class Move(NamedTuple):
    """One move of a chain, when it has ended."""

    sweep: int  # after which it ended
    before: int  # components before the merging
    after: int  # and after it
    log_likelihood: float  # after the merging; NaN where moves only merge


class Tuning(NamedTuple):
    """What happened to a chain before its draws; of numbers, text and tuples of them alone, for checkpoints."""

    candidates: tuple[Candidate, ...] = ()
    moves: tuple[Move, ...] = ()
    components: int = 0  # at the start, if moves follow: they may be more than the model has
    started: float = np.nan  # log-likelihood at the start
    tuned: float = np.nan  # and after the last sweep of tuning; the same if there is none

    @classmethod
    def of_parts(cls, candidates: Any, moves: Any, *rest: Any) -> "Tuning":
        """From nested tuples."""
        return cls(tuple(Candidate(*each) for each in candidates), tuple(Move(*each) for each in moves), *rest)


class Record:
    """A chain's tuning so far."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning

    def note(self, **changes: Any) -> None:
        """Replace some fields."""
        self.tuning = self.tuning._replace(**changes)

    def note_move(self, move: Move) -> None:
        """Add a move."""
        self.note(moves=(*self.tuning.moves, move))


_record: ContextVar[Record | None] = ContextVar("record of a chain", default=None)


@contextmanager
def recorded(tuning: Tuning) -> Iterator[Record]:
    """A chain's record, which goes on from ``tuning``, for notes of this thread."""
    record = Record(tuning)
    token = _record.set(record)
    try:
        yield record
    finally:
        _record.reset(token)


def record() -> Record | None:
    """That of the chain which this thread runs."""
    return _record.get()


def note_race(race: str, scores: Sequence[float] | np.ndarray, taken: int, rounds: Sequence[int] | None = None) -> None:
    """Add candidates with these scores, of which the one at the place ``taken`` goes on, to the chain's record."""
    found = record()
    if found is None:
        return
    rounds = [1] * len(scores) if rounds is None else rounds
    new = tuple(Candidate(race, i + 1, int(rounds[i]), float(score), int(i == taken)) for i, score in enumerate(scores))
    found.note(candidates=found.tuning.candidates + new)


def store(tree: xr.DataTree, tunings: Sequence[Tuning]) -> None:
    """Add the records of a fit's chains to its tree: of each as many candidates and moves as of the others."""
    variables: dict[str, Any] = {
        name: ("chain", np.array([getattr(each, name) for each in tunings], dtype=np.float64))
        for name in CHAIN_VARIABLES
    }
    for field, dim, names in (("moves", "move", MOVE_VARIABLES), ("candidates", "candidate", CANDIDATE_VARIABLES)):
        rows = [getattr(each, field) for each in tunings]
        if rows[0]:
            for name in names:
                values = np.array([[getattr(row, name) for row in own] for own in rows], dtype=np.float64)
                variables[f"{dim}_{name}"] = (("chain", dim), values)
    if tunings[0].candidates:
        races = np.array([each.race for each in tunings[0].candidates], dtype=object)
        variables["candidate_race"] = ("candidate", races)
    coordinates = {"chain": tree["posterior"]["chain"].to_numpy()}
    tree[GROUP] = xr.Dataset(variables, coords=coordinates)


def chains_of(tree: xr.DataTree, weights: np.ndarray) -> pd.DataFrame:
    """A row per chain: what it began with, its log-likelihoods from the start on, and its weight."""
    scores = tree["sample_stats"]["log_likelihood"].to_numpy()
    columns: dict[str, Any] = {"chain": np.arange(len(scores))}
    if GROUP in tree.children:
        group, candidates = tree[GROUP], starts_of(tree)
        if candidates is not None:
            last = candidates[candidates["race"] == candidates["race"].iloc[-1]]
            columns["starts"] = last.groupby("chain").size().to_numpy()
            columns["start"] = last.loc[last["taken"], "start"].to_numpy()
        columns["log_likelihood_start"] = group["started"].to_numpy()
        columns["log_likelihood_tuned"] = group["tuned"].to_numpy()
    columns["log_likelihood_mean"], columns["log_likelihood_last"] = scores.mean(axis=1), scores[:, -1]
    return pd.DataFrame(columns | {"weight": weights})


def starts_of(tree: xr.DataTree) -> pd.DataFrame | None:
    """A row per chain and start that it chose among; None where starts did not choose."""
    if GROUP not in tree.children or "candidate_race" not in tree[GROUP]:
        return None
    found = long_table(tree[GROUP], "candidate", CANDIDATE_VARIABLES)
    race = np.tile(tree[GROUP]["candidate_race"].to_numpy(), tree[GROUP].sizes["chain"])
    found.insert(1, "race", race)
    found = found.rename(columns={"number": "start"}).drop(columns="candidate")
    return found.astype({"start": int, "rounds": int, "taken": bool})


def moves_of(tree: xr.DataTree) -> pd.DataFrame | None:
    """A row per chain and move; None where there were none.

    A move's gain is the difference between log-likelihoods after its merging and where it began: after the move before,
    or at the start.
    """
    if GROUP not in tree.children or "move_sweep" not in tree[GROUP]:
        return None
    group = tree[GROUP]
    found = long_table(group, "move", MOVE_VARIABLES).astype({"sweep": int, "before": int, "after": int})
    begun, score = ((group[f"move_{name}"].to_numpy()) for name in ("after", "log_likelihood"))
    begun = np.column_stack([group["components"].to_numpy(), begun[:, :-1]])
    earlier = np.column_stack([group["started"].to_numpy(), score[:, :-1]])
    splits = np.ravel(group["move_before"].to_numpy() > begun)
    found.insert(3, "kind", np.where(splits, "split and merge", "merge"))
    found["move"] += 1
    return found.assign(gain=np.ravel(score - earlier))


def long_table(group: Any, dim: str, names: Sequence[str]) -> pd.DataFrame:
    """Variables over (chain, dim) as columns, with a row per chain and entry."""
    shape = group[f"{dim}_{names[0]}"].shape
    chain, place = (np.ravel(each) for each in np.indices(shape))
    values = {name: np.ravel(group[f"{dim}_{name}"].to_numpy()) for name in names}
    return pd.DataFrame({"chain": chain, dim: place} | values)
