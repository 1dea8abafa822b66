"""compare: which model predicts reports best that it did not see."""

import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from countveil.common.parameters import check_integer
from countveil.data.io import check_npz
from countveil.engines.opening import check_engine
from countveil.engines.threads import one_blas_thread, threads_worth
from countveil.inference.checkpoint import fingerprint
from countveil.inference.diagnostics import FitWarning
from countveil.inference.folds import Cells, folds_of, is_mirrored, log_mean_extrapolated, stacking_weights
from countveil.inference.matching import halves
from countveil.inference.predict import scores_of_draws
from countveil.inference.progress import compiling_told, progress_bar
from countveil.plotting import differences
from countveil.privacy._archive import replacing
from countveil.privacy._text import card, listed
from countveil.selection.candidates import Candidate, Model, candidates_of

LEVEL = 2.0  # standard errors: models within them of the best are tied with it
CELLS = 1000  # scores are given per this many


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Models compared by how probable they find reports that they did not see.

    Attributes:
        table: a row for each model, in the order given. score: the mean log predictive probability of held-out
            reports (natural logarithm), per 1,000 cells; higher is better. difference: its score less that of the best
            model, with its standard_error; seconds of all its fits; and the parameters in which the models differ.
        best: the name of the model with the highest score.
        weights: the models' stacking weights, by name.
        level: the names of the models within two standard errors of the best, which is among them.
        verdict: this in words, with fits that failed.
        scores: (models, cells) log predictive probability of every held-out report; NaN where the model's fit failed.
        rows, columns, folds: (cells,) where these cells are in the data, and the fold that held them out.
        failures: {model: what went wrong}.
        seed: of the folds and of the fits.
    """

    names: tuple[str, ...]
    scores: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    folds: np.ndarray
    seconds: np.ndarray
    differs: tuple[Mapping[str, Any], ...]
    seed: int
    failures: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Scores, differences and their standard errors, one row for each model."""
        score = CELLS * self.scores.mean(axis=1)
        columns: dict[str, Any] = {"model": list(self.names), "score": score}
        gaps = self.scores - self.scores[self.names.index(self.best)]
        columns["difference"] = CELLS * gaps.mean(axis=1)
        columns["standard_error"] = [CELLS * standard_error(gap, self.rows, self.columns) for gap in gaps]
        columns["seconds"] = self.seconds
        for name in dict.fromkeys(name for own in self.differs for name in own):
            values = [own.get(name) for own in self.differs]
            columns["class" if name == "model" else name] = pd.Series(values, dtype=object).infer_objects()
        return pd.DataFrame(columns)

    @property
    def best(self) -> str:
        """The model with the highest score."""
        return self.names[int(np.nanargmax(self.scores.mean(axis=1)))]

    @property
    def level(self) -> tuple[str, ...]:
        """The models within two standard errors of the best."""
        table = self.table
        near = table["difference"] + LEVEL * table["standard_error"] >= 0.0
        return tuple(table["model"][near])

    @cached_property
    def verdict(self) -> str:
        """Which models are best, tied and worse, and which fits failed."""
        if len(self.names) == 1:
            return f"There is only one model, {self.best}: compare it with others."
        said = [f"{self.best} predicts held-out reports best."]
        others = [name for name in self.level if name != self.best]
        if others:
            said.append(f"{listed(others)} {'is' if len(others) == 1 else 'are'} tied with it.")
        for name, difference, error in self.table[["model", "difference", "standard_error"]].itertuples(index=False):
            if name in self.failures:
                said.append(f"{name} was not scored: {self.failures[name]}.")
            elif name not in self.level:
                by = (
                    f"{-difference / error:.1f} standard errors"
                    if error > 0.0
                    else f"{-difference:.3g} per 1,000 cells"
                )
                said.append(f"{name} is worse by {by}.")
        return " ".join(said)

    @cached_property
    def weights(self) -> pd.Series:
        """The models' stacking weights, by name, with sum one: how much of each predicts best together.

        Of predictions by fits that saw other folds (mathematics, section 15). A model whose fit failed has none.
        """
        scored = np.isfinite(self.scores).all(axis=1)
        weights = np.zeros(len(self.names))
        weights[scored] = stacking_weights(self.scores[scored].T)
        return pd.Series(weights, index=list(self.names), name="weight")

    def beside(self, other: "Comparison") -> "Comparison":
        """The models of both, of the same cells of the same folds."""
        return replace(
            self,
            names=self.names + other.names,
            scores=np.concatenate([self.scores, other.scores]),
            seconds=np.concatenate([self.seconds, other.seconds]),
            differs=self.differs + other.differs,
            failures={**self.failures, **other.failures},
        )

    def plot(self, *, ax: Any = None) -> Any:
        """Differences from the best model, with bars of two standard errors; returns the axes.

        Raises:
            ModuleNotFoundError: matplotlib is missing (extra ``plots``).
        """
        return differences(self.table, ax=ax)

    def __repr__(self) -> str:
        return f"{self.table.round(3).to_string(index=False)}\n{self.verdict}"

    def _repr_html_(self) -> str:
        table = self.table
        rows = [
            (name, f"{score:.2f} per 1,000 cells, {gap:+.2f} ± {LEVEL * error:.2f} from the best")
            for name, score, gap, error in table[["model", "score", "difference", "standard_error"]].itertuples(
                index=False
            )
        ]
        return card("Held-out reports, log predictive probability", rows, self.verdict)


def standard_error(differences: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> float:
    """The standard error of the mean of cells' differences, where cells of a row or of a column depend on each other.

    Two-way clustering (Cameron, Gelbach and Miller 2011): the variance by rows plus that by columns less that by cells;
    never less than any of the three.
    """
    by_row, by_column, by_cell = (
        clustered_variance(differences, groups) for groups in (rows, columns, np.arange(differences.size))
    )
    return float(np.sqrt(max(by_row + by_column - by_cell, by_row, by_column, by_cell)))


def clustered_variance(differences: np.ndarray, groups: np.ndarray) -> float:
    """The variance of the mean of cells' differences, where cells of a group depend on each other.

    G / (G - 1) sum_g (sum of (difference - mean) in g)^2 / n^2 for G groups and n cells.
    """
    _, place = np.unique(groups, return_inverse=True)
    sums = np.bincount(place, differences - differences.mean())
    return float(sums.size / max(sums.size - 1, 1) * (sums**2).sum() / differences.size**2)


FORMAT = 2


class Scored(NamedTuple):
    """What became of one fit: the score of every cell of its fold, or why there is none."""

    scores: np.ndarray
    seconds: float
    failure: str = ""


Place = tuple[int, int]  # of a fit: numbers of its model and of its fold


def write(path: Path, mark: str, done: dict[Place, Scored]) -> None:
    """Write all fits that did not fail, in one step."""
    content: dict[str, Any] = {"format": np.array(FORMAT), "fingerprint": np.array(mark)}
    for (model, fold), scored in done.items():
        if not scored.failure:
            content[f"scores_{model}_{fold}"] = scored.scores
            content[f"seconds_{model}_{fold}"] = np.array(scored.seconds)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **content)


def read(path: Path, mark: str, sizes: dict[Place, int]) -> dict[Place, Scored]:
    """The fits in a file that ``write`` wrote; ``sizes`` are the numbers of cells of all fits.

    Raises:
        ValueError: the file is not such a file, is damaged, or belongs to another comparison.
    """
    try:
        check_npz(path)
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            content = {name: stored[name] for name in stored.files}
        version, found = int(content["format"]), str(content["fingerprint"])
        if version != FORMAT:
            raise ValueError(f"format {version}, not {FORMAT}")
    except Exception as error:
        raise ValueError(f"checkpoint {path} must be a file that compare wrote, got: {error!s:.300}") from error
    if found != mark:
        raise ValueError(
            f"checkpoint {path} must come from the same data, models and seed, got one of a different comparison"
        )
    done = {}
    for (model, fold), size in sizes.items():
        scores = content.get(f"scores_{model}_{fold}")
        if scores is None:
            continue
        seconds = content.get(f"seconds_{model}_{fold}", np.array(np.nan))
        if scores.shape != (size,) or scores.dtype != np.float64 or not np.isfinite(scores).all() or seconds.shape:
            got = f"{scores.dtype} of shape {scores.shape}"
            if (scores.shape, scores.dtype) == ((size,), np.float64):
                got = "scores that are not finite" if scores.size and not np.isfinite(scores).all() else "many times"
            raise ValueError(
                f"checkpoint {path} must hold {size} finite scores of model {model} and fold {fold}, with one time, "
                f"got {got}: delete it and compare again"
            )
        done[model, fold] = Scored(scores, float(seconds))
    return done


DRAWS, TUNE, THIN, CHAINS = 25, 100, 2, 2
"""Short fits, but not too short, nor of one chain: both favour few components, whose chains arrive sooner and differ
less (docs/choosing.md). What few draws and few chains lack is extrapolated."""


class Problem(NamedTuple):
    """What is to be fitted and scored: every candidate without every fold of cells."""

    candidates: list[Candidate]
    folds: list[Cells]
    seeds: list[int]  # of each fold's fits
    pairs: bool  # whether both cells of a pair of actors are hidden together

    @property
    def fits(self) -> list[Place]:
        """All of them; the largest models come first, so that no worker is left with one of them at the end."""
        order = sorted(range(len(self.candidates)), key=lambda m: -self.candidates[m].size)
        return [(model, fold) for model in order for fold in range(len(self.folds))]


def compare(
    data: Any,
    models: Any,
    folds: int = 5,
    seed: int | None = None,
    *,
    covariates: Any = None,
    draws: int | None = DRAWS,
    tune: int | None = TUNE,
    thin: int | None = THIN,
    chains: int | None = CHAINS,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> Comparison:
    """Cross-validate models on held-out reports: which number of topics, which likelihood, which priors.

    The cells that were seen are dealt at random into folds, at most 200,000 into each. Every model is fitted without
    the cells of a fold, the same for all models, and scored on their reports: the log of the posterior average of
    P(report | draw), a proper score whatever the likelihood (mathematics, equation 13.7). It is extrapolated to many
    draws (equation 15.4), and from two or more chains to as many as the model has itself (equation 15.5), since a mean
    over few of them is too low, and more so with many components. Models are then compared cell by cell with the best
    one. Cells that are masked in the data, or that a model leaves out, such as self-loops, are not scored. Of an
    undirected network each pair is one cell, hidden on both sides of the diagonal.

    Args:
        data: whatever the models' ``fit`` takes.
        models: a list of models, or a dict of them by name. Without names, they are named by what they differ in.
        folds: how many, from 2 on; each is fitted by every model.
        seed: of the folds and the fits, in place of the models' own.
        covariates: a DataFrame for the models that have a ``prevalence``, as their ``fit`` takes it.
        draws, tune, thin, chains: as for the models and their methods, in their place: the defaults make short fits.
            None keeps the models' own. Whatever ``chains`` is, scores are about the models' own number of them, the
            most where that is "auto".
        threads: how many fits to make at once; None takes all cores, or one where data are small. Does not change
            the result.
        progress: as for the models.
        checkpoint, resume: a file that keeps the scores of finished fits, and whether to go on from it. One that cannot
            be written is a warning.

    Raises:
        TypeError: models that are not of the library, or data that they do not take.
        ValueError: fewer than two folds; no models, or two of one name; data that a model refuses; covariates that no
            model has a formula for, or that one needs and lacks; a checkpoint that is damaged or belongs to another
            comparison; every fit of every model failed.
        FileExistsError: the checkpoint exists and ``resume`` is not set.
        FileNotFoundError: the checkpoint's folder does not exist.
    """
    check_integer("folds", folds, 2)
    for name, value, least in (
        ("draws", draws, 1),
        ("tune", tune, 0),
        ("thin", thin, 1),
        ("chains", chains, 1),
        ("threads", threads, 1),
    ):
        if value is not None:
            check_integer(name, value, least)
    path = checkpoint_path(checkpoint, resume, seed)
    if seed is not None:
        check_integer("seed", seed, 0, 10**40 - 1)
    settled = secrets.randbits(63) if seed is None else int(seed)
    short = {"draws": draws, "tune": tune, "thin": thin, "chains": chains}
    problem = problem_of(candidates_of(data, models, short, covariates), folds, settled)
    mark = "" if path is None else mark_of(problem, settled)
    sizes = {(m, f): problem.folds[f].size for m, f in problem.fits}
    done = read(path, mark, sizes) if path is not None and path.exists() else {}

    def save() -> None:
        if path is not None:
            keep(path, mark, done)

    run(problem, done, threads_worth(problem.candidates[0].observed) if threads is None else threads, progress, save)
    return with_scores(comparison_of(problem, done, settled))


def compare_quickly(
    data: Any, models: Mapping[str, Model], folds: tuple[int, int], seed: int, threads: int, progress: bool | None
) -> Comparison:
    """``compare`` with its short fits, where of the first number of folds only the second are held out and scored.

    Fits may all fail: see ``with_scores``.

    Raises:
        ValueError: data or models that ``compare`` refuses.
    """
    short = {"draws": DRAWS, "tune": TUNE, "thin": THIN, "chains": CHAINS}
    problem = problem_of(candidates_of(data, models, short), folds[0], seed)
    problem = problem._replace(folds=problem.folds[: folds[1]])
    done: dict[Place, Scored] = {}
    run(problem, done, threads, progress, lambda: None)
    return comparison_of(problem, done, seed)


def checkpoint_path(checkpoint: str | os.PathLike[str] | None, resume: bool, seed: int | None) -> Path | None:
    """Where finished fits are kept; errors as ``compare``."""
    if checkpoint is None:
        if resume:
            raise ValueError(
                "resume (--resume) must come with checkpoint (--checkpoint), the file to continue from, got none"
            )
        return None
    if not isinstance(checkpoint, str | os.PathLike):
        raise TypeError(f"checkpoint must be a path, got {type(checkpoint).__name__}")
    if seed is None:
        raise ValueError("checkpoint must come with a seed, so that the fits continue as they began, got seed None")
    path = Path(checkpoint)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"checkpoint must go to a folder that exists, got {path}")
    if path.exists() and not resume:
        raise FileExistsError(
            f"checkpoint must be a new file, got {path}, which exists: give resume=True (--resume) or another name"
        )
    return path


def keep(path: Path, mark: str, done: dict[Place, Scored]) -> None:
    """Write the checkpoint; one that cannot be written is told of by a warning, since the fits are worth more."""
    try:
        write(path, mark, done)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        warnings.warn(
            f"checkpoint {path} cannot be written ({reason}): the comparison continues without it",
            RuntimeWarning,
            stacklevel=2,
        )


def problem_of(candidates: list[Candidate], folds: int, seed: int) -> Problem:
    """The folds, and a seed for the fits of each of them: that of all models, so that they differ in nothing else."""
    observed = list({id(each.observed): each.observed for each in candidates}.values())  # often one for all
    undirected = any(getattr(each.model, "directed", None) is False for each in candidates)
    pairs = undirected or any(seen.provenance.directed is False or is_mirrored(seen) for seen in observed)
    of_folds, *of_fits = np.random.SeedSequence(seed).spawn(1 + folds)
    cells = folds_of(observed, folds, np.random.default_rng(of_folds), pairs)
    return Problem(candidates, cells, [int(each.generate_state(1, np.uint64)[0] >> 1) for each in of_fits], pairs)


def mark_of(problem: Problem, seed: int) -> str:
    """A digest of the data, the models in their order, the folds and the seed."""
    settings = {"models": [each.facts for each in problem.candidates], "folds": len(problem.folds), "seed": seed}
    return fingerprint(problem.candidates[0].observed, settings)


def run(
    problem: Problem, done: dict[Place, Scored], threads: int, progress: bool | None, save: Callable[[], None]
) -> None:
    """Make all fits that are not done yet, side by side, and add what becomes of them to ``done``.

    Ctrl-C waits for the fits under way, so that their scores are saved too.
    """
    waiting = [place for place in problem.fits if place not in done]
    on_cluster = any(check_engine(each.model.engine) for each in problem.candidates)
    workers = 1 if on_cluster else min(threads, max(1, len(waiting)))
    with (
        warnings.catch_warnings(),
        compiling_told(progress),
        one_blas_thread(),
        progress_bar(progress, "fits") as bar,
        ThreadPoolExecutor(workers) as pool,
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)  # short chains by design
        warnings.simplefilter("ignore", FitWarning)
        task = bar.add_task("comparing", total=len(problem.fits), completed=len(done), score="")
        futures = {pool.submit(attempt, problem, place, threads // workers): place for place in waiting}

        def collect(finished: Iterable[Future[Scored]]) -> None:
            for future in finished:
                if futures[future] not in done:
                    done[futures[future]] = future.result()
                    bar.update(task, completed=len(done))
                    save()

        try:
            collect(as_completed(futures))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            collect(each for each in futures if not each.cancelled() and each.exception() is None)
            raise


def attempt(problem: Problem, place: Place, threads: int) -> Scored:
    """Fit a model without a fold's cells, and score them; what goes wrong is the result."""
    started, cells = time.perf_counter(), problem.folds[place[1]]
    try:
        scores = held_out_scores(problem, place, threads)
        failure = "" if np.isfinite(scores).all() else "a score that is not finite"
    except Exception as error:
        scores, failure = np.full(cells.size, np.nan), f"{type(error).__name__}: {error}"
    if failure:
        failure = f"its fit without fold {place[1] + 1} failed ({failure})"
        scores = np.full(cells.size, np.nan)
    return Scored(scores, time.perf_counter() - started, failure)


def held_out_scores(problem: Problem, place: Place, threads: int) -> np.ndarray:
    """(cells,) log of the posterior average of P(report | draw) of a fold's cells, by the fit that did not see them.

    Extrapolated to many draws, and to as many chains as the model asks for itself.
    """
    candidate, cells = problem.candidates[place[0]], problem.folds[place[1]]
    observed, own = candidate.observed, {"seed": problem.seeds[place[1]], "threads": threads}
    training = observed.hide(*(cells.both_directions() if problem.pairs else cells))
    model = clone(candidate.model).set_params(**own, progress=False)
    fit = model.fit(training, covariates=candidate.covariates)
    places = np.stack([cells.rows, *np.unravel_index(cells.columns, observed.mode_shape[1:])], axis=1)
    draws = fit._reader.draws()
    matrix = fit._reader.data_matrix(observed)
    scores = scores_of_draws(draws, matrix, fit.model_.likelihood, *fit._reader.matrix_places(places))
    return log_mean_extrapolated(scores, *halves(fit.posterior), candidate.n_chains)


def with_scores(found: Comparison) -> Comparison:
    """The same; raises ValueError if every model failed in some fold."""
    if len(found.failures) == len(found.names):
        raise ValueError(
            f"models must include at least one that can be fitted, got {len(found.names)} that failed, the first with: "
            f"{next(iter(found.failures.values()))}"
        )
    return found


def comparison_of(problem: Problem, done: dict[Place, Scored], seed: int) -> Comparison:
    """What all fits together say."""
    numbers = range(len(problem.folds))
    each = [[done[m, f] for f in numbers] for m in range(len(problem.candidates))]
    names = tuple(candidate.name for candidate in problem.candidates)
    failures = {
        name: next(scored.failure for scored in own if scored.failure)
        for name, own in zip(names, each, strict=True)
        if any(scored.failure for scored in own)
    }
    return Comparison(
        names,
        np.array([np.concatenate([scored.scores for scored in own]) for own in each]),
        np.concatenate([cells.rows for cells in problem.folds]),
        np.concatenate([cells.columns for cells in problem.folds]),
        np.repeat(numbers, [cells.size for cells in problem.folds]),
        np.array([sum(scored.seconds for scored in own) for own in each]),
        tuple(candidate.differs for candidate in problem.candidates),
        seed,
        failures,
    )
