"""A checklist for a paper, filled in from a fit: what its readers need to know, and what is still to be done."""

import re
from collections.abc import Callable
from inspect import signature
from typing import NamedTuple

import numpy as np
import pandas as pd

from countveil import __version__
from countveil.data.mechanism_checks import MechanismState
from countveil.data.observations import Observations
from countveil.fit.base import FactorizationEstimator
from countveil.fit.choosing import CHOSEN, choice_in_words, own_choice, size_of
from countveil.fit.naming import merged_in_words
from countveil.fit.predictive_checks import Check, check, judged_with
from countveil.fit.reading import weights_in_words
from countveil.fit.totals import far_off, totals_of
from countveil.inference.diagnostics import Diagnostics, State, quantity_of
from countveil.inference.posterior import flat_draws, masked_kept
from countveil.inference.run import Sampler
from countveil.laws.noise import AnyMechanismNoise
from countveil.models.factorization import Factor
from countveil.models.priors.prior import ranged
from countveil.privacy import PrivacyLevel, Release
from countveil.privacy._text import plain
from countveil.report.loading import observed, stating
from countveil.report.page import diagnostic_rows, noise_table, parameters
from countveil.report.promise import Releases, promise_of
from countveil.report.sections import bursts_of


def priors_of(fit: FactorizationEstimator) -> list[tuple[str, str]]:
    """(factor, its prior in words) of every factor of the model."""
    return [(factor.name, " ".join(filter(None, words_of(fit, factor)))) for factor in fit.model_.factors]


def words_of(fit: FactorizationEstimator, factor: Factor) -> tuple[str, str]:
    """The prior, and what was learned of its shape."""
    if factor.fixed is not None:
        return "Known: it was given, and not inferred.", ""
    return factor.prior.describe(), learned(fit, factor)


def learned(fit: FactorizationEstimator, factor: Factor) -> str:
    """The posterior of a shape that was learned, with an interval where those are calibrated; empty without one."""
    name = f"{factor.name}_shape"
    if name not in fit.posterior["posterior"]:
        return ""
    draws = flat_draws(fit.posterior, name)
    if draws.ndim > 1:
        return f"Posterior means of the shapes: {ranged(draws.mean(axis=0))}."
    ends = (
        ""
        if fit._reader.why_no_intervals
        else (" (90% interval {} to {})".format(*(ranged(end) for end in np.quantile(draws, [0.05, 0.95]))))
    )
    return f"Posterior mean of the shape: {ranged(draws.mean())}{ends}."


MARKUP = str.maketrans({each: f"\\{each}" for each in "\\`*[]<|"})
GUIDE = "reports.md in the documentation"
COVERAGE = (
    "On data simulated from the model, 90% intervals of this method covered 89 to 90% of the true rates at four noise "
    "levels; with learned shapes they covered 88% of the probabilities of planted topics' top words (evidence.md in "
    "the documentation). They assume that the model is right, and do not cover components that the chains did not "
    "find."
)
PAPER = (
    "Schein, Wu, Schofield, Zhou and Wallach (2019), Locally Private Bayesian Inference for Count Models, "
    "International Conference on Machine Learning"
)
COMMANDS = {
    "TopicModel": ("topics", "--topics"),
    "BlockModel": ("blocks", "--communities"),
    "TensorModel": ("tensor", "--components"),
}  # of a model: to fit it, and the option of `countveil compare` and `countveil fit`
OPTIONS = ("method", "draws", "tune", "chains", "likelihood", "dispersion")  # of `countveil fit`, too
VOUCHES = {
    "exact": "Nobody has to: these are true counts.",
    "naive": "The reports were treated as true counts, so nothing is assumed about their noise.",
}


class Item(NamedTuple):
    """One line of the list: what the fit says, and what answers the question where it does not."""

    section: str
    name: str
    done: bool
    said: str
    command: str = ""


class Files(NamedTuple):
    """What commands call the fit and the release."""

    fit: str = "fit.nc"
    release: str = "release.npz"


class Checklist(NamedTuple):
    """All items in order; ``print`` shows them as Markdown."""

    items: tuple[Item, ...]
    judged: Diagnostics

    @property
    def table(self) -> pd.DataFrame:
        """One row per item: section, name, done, said, command."""
        return pd.DataFrame(self.items, columns=list(Item._fields))

    @property
    def open(self) -> tuple[Item, ...]:
        """What is still to be done."""
        return tuple(item for item in self.items if not item.done)

    def __str__(self) -> str:
        """Markdown with a box per item, open where something is still to be done; it ends without a line end."""
        lines: list[str] = ["# Checklist for a paper", "", f"{len(self.open)} of {len(self.items)} boxes are open."]
        section = ""
        for item in self.items:
            if item.section != section:
                section = item.section
                lines += ["", f"## {section}", ""]
            box, said = "x" if item.done else " ", plain(item.said).translate(MARKUP)
            lines.append(f"- [{box}] **{plain(item.name).translate(MARKUP)}.** {said}")
            if item.command:
                lines += ["", *(f"      {line}" for line in item.command.splitlines()), ""]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip()


def checklist_of(
    fit: FactorizationEstimator, release: Release | Observations | None = None, files: Files | None = None
) -> Checklist:
    """What a paper should say of a fit, as far as the fit knows it, and the commands that answer the rest.

    Never a true count, nor a label of the data.

    Args:
        fit: any fitted model.
        release: what it was fitted to, such as what ``join`` returned; with it the list has the stated level and
            posterior predictive checks. Other observations, such as ``PrivatizedCounts``, state no level.
        files: what the commands call the two files.

    Raises:
        TypeError: a release that is neither a ``Release`` nor observations.
        ValueError: a release that is not the fit's.
        NotFittedError: before ``fit``.
    """
    data = None if release is None else observed(fit, release)
    releases, files = stating(release), files or Files()
    compared = None if data is None or fit._reader.why_no_intervals else check(fit, data)
    judged = judged_with(fit, fit.diagnostics(), compared)
    sections: dict[str, Callable[[], list[tuple[str, bool, str, str]]]] = {
        "Data": lambda: data_items(fit, data, releases, files),
        "Privacy": lambda: privacy_items(fit, releases, files),
        "Model and priors": lambda: model_items(fit, files),
        "Computation": lambda: computation_items(fit),
        "Diagnostics": lambda: diagnostic_items(fit, judged, data, files),
        "Posterior predictive checks": lambda: predictive_items(fit, compared, files, data is not None),
        "Sensitivity": lambda: sensitivity_items(fit, files),
        "Intervals and software": lambda: closing_items(fit),
    }
    items = tuple(Item(section, *row) for section, rows in sections.items() for row in rows())
    return Checklist(items, judged)


Rows = list[tuple[str, bool, str, str]]  # name, done, said, command


def again(files: Files) -> str:
    """The command that fills in what needs the release."""
    return f"countveil checklist {files.fit} --release {files.release}"


def data_items(fit: FactorizationEstimator, data: Observations | None, releases: Releases, files: Files) -> Rows:
    """Size, masked cells, what was done to the counts, and who says so."""
    cells = int(np.prod([len(names) for names in fit._reader.axes.values()], dtype=np.int64))
    masked = masked_kept(fit.posterior) if data is None else data.n_masked
    hidden = (
        "The fit does not keep how many cells were masked."
        if masked is None
        else f"{masked:,} of {cells:,} cells ({masked / cells:.1%}) were masked: hidden from the fit, or no part of "
        "its data, as self-loops and the other half of an undirected network are."
    )
    noise = "; ".join(f"{name}: {value}" for name, value in noise_table(fit))
    vouched = who_vouches(fit, releases)
    return [
        ("Size", True, f"{fit._reader.data_in_words()}: {cells:,} cells.", ""),
        ("Masked cells", masked is not None, hidden, "" if masked is not None else again(files)),
        ("What was done to the counts", True, f"{noise[0].upper()}{noise[1:]}.", ""),
        (
            "Who vouches for it",
            bool(vouched),
            vouched or "The fit was made of private counts, and does not keep whether a release states their noise.",
            "" if vouched else again(files),
        ),
    ]


def who_vouches(fit: FactorizationEstimator, releases: Releases) -> str:
    """Who says what was done to the counts; empty where neither fit nor release knows."""
    facts = fit.posterior.attrs
    if facts["observations"] != "private":
        return VOUCHES[str(facts["observations"])]
    if facts["simulated_noise"]:
        return "The noise was simulated from a seed, for research. It protects nobody."
    if "source" in facts:
        return f"Whoever imported the reports. They are from: {facts['source']}."
    if len(releases) > 1:
        return f"The owners of the counts: the {len(releases)} releases that they made state it."
    return "The owners of the counts: the release that they made states it." if releases else ""


def privacy_items(fit: FactorizationEstimator, releases: Releases, files: Files) -> Rows:
    """What is promised, what is not, and the stated level."""
    found = promise_of(fit, *releases)
    rows: Rows = [("Statement", True, " ".join([found.headline, *found.paragraphs]), "")]
    if found.distances and found.kind == "private":
        told = "; ".join(f"by {distance}: {guesses}" for distance, _, guesses in found.distances)
        said = (
            "Of two equally likely sets of counts, the share that the best guess from a report gets right, by how many "
            f"counts they differ: {told}."
        )
        rows.append(("How well counts can be told apart", True, said, ""))
    if found.kind != "private" or "source" in fit.posterior.attrs:
        return rows
    stated = bool(releases)
    known = dict.fromkeys(each for release in releases for each in release.known_mechanisms)
    without = [each for each in known if PrivacyLevel.kept_by(each) is None]
    said = "The statement above has it." if stated else "The fit keeps only the strength of the noise."
    if without:
        said = f"There is none: {' and '.join(each.in_words for each in without)} states no level of privacy."
    return [*rows, ("Level as it was stated", stated, said, "" if stated else again(files))]


def model_items(fit: FactorizationEstimator, files: Files) -> Rows:
    """Model, likelihood, priors with what was learned, and the check of the priors."""
    bursts, model = bursts_of(fit), fit.model_
    formula = getattr(fit, "prevalence", None)
    about = f" Covariates of the rows: {formula}." if formula else ""
    every = model.rows.sizes | model.columns.sizes
    sizes = ", ".join(f"{axis} = {every[axis]}" for axis in model.spec.latent)
    likelihood = f"{model.likelihood.name}. {bursts.said if bursts else ''}".strip()
    rows: Rows = [
        ("Model", True, f"{type(fit).__name__}: rates {model.spec.text} with {sizes}.{about}", ""),
        ("Likelihood of a count given its rate", True, likelihood, ""),
        *((f"Prior of {name}", True, said, "") for name, said in priors_of(fit)),
        ("Parameters", True, f"{parameters(fit)}.", ""),
    ]
    unchecked = f"Fits keep no draws from their prior. {GUIDE} has code that draws from it: state what it allows."
    return [*rows, ("Prior predictive check", False, unchecked, "")]


def computation_items(fit: FactorizationEstimator) -> Rows:
    """Method, chains, draws, seed, version."""
    facts, sizes = fit.posterior.attrs, fit.posterior["posterior"].sizes
    if "optimisation" in fit.posterior.children:
        length = f"{fit.n_iter_} iterations"
    else:
        thin = fit._thin()
        kept = "" if thin == 1 else f", of which one in {thin} was kept"
        length = f"{sizes['chain']} chains of {sizes['draw']} draws after {fit.tune} sweeps of tuning{kept}"
    weights = weights_in_words(fit)
    whole = "It was interrupted: it has only what was computed until then." if fit.interrupted_ else ""
    return [
        ("Method", not fit.interrupted_, f"{facts['method']}: {length}. {whole}".strip(), ""),
        ("Weights of the chains", True, weights or "equal", ""),
        ("Seed and version", True, f"Seed {facts['seed']}, {facts['library']}.", ""),
    ]


def mechanism_items(found: Diagnostics) -> Rows:
    """What the reports say of the mechanism that is stated for them."""
    if found.mechanism is None:
        return []
    state = found.mechanism.state
    return [("Stated mechanism", state is MechanismState.CONSISTENT, str(found.mechanism), "")]


def diagnostic_items(fit: FactorizationEstimator, found: Diagnostics, data: Observations | None, files: Files) -> Rows:
    """The verdict, the mechanism, every quantity's numbers, the support of components, and the total."""
    trusted = found.state in (State.SAFE, State.WITH_SUPPORT)
    rows: Rows = [(f"Verdict: {found.state.value}", trusted, found.verdict, ""), *mechanism_items(found)]
    names = ("R-hat", "nested R-hat", "effective draws (bulk)", "effective draws (tail)")
    for name, numbers, said in diagnostic_rows(found.table):
        row = found.table.loc[name]
        if "converged" in found.table:
            rows.append(("Convergence", bool(found.table["converged"].iloc[0]), said, ""))
            continue
        listed = ", ".join(f"{each} {value}" for each, value in zip(names, numbers, strict=True))
        rows.append((f"Chains: {name}", quantity_of(name, row)[1], f"{listed}: {said}.", ""))
    rows += [supports(fit, part.axes[0], part.many) for part in fit._reader.kinds]
    if fit.posterior.attrs["observations"] == "exact":
        return [*rows, ("Expected sum of counts", True, "The fit is of true counts, which are not printed here.", "")]
    totals = fit.totals()
    if totals is None and data is not None and not isinstance(data.noise, AnyMechanismNoise):
        totals = totals_of(fit, data)
    if totals is None:
        said = "The fit does not keep the sum of its reports."
        return [*rows, ("Expected sum of counts", False, said, again(files))]
    return [*rows, ("Expected sum of counts", not far_off(totals, fit), f"{totals}.", "")]


def supports(fit: FactorizationEstimator, axis: str, many: str) -> tuple[str, bool, str, str]:
    """In how many chains the components of a kind are; the numbers of those that are not in all."""
    table = fit.parts.support(axis=axis)
    if table["support"].isna().all():
        single = "One chain, or one point estimate, cannot show what another would find."
        return f"Support of the {many}", False, single, ""
    every = int((table["support"] > 1.0 - 1e-9).sum())
    others = ", ".join(
        f"{number} ({support:.0%})"
        for number, support in zip(table["component"], table["support"], strict=True)
        if support <= 1.0 - 1e-9
    )
    rest = f" Others, with their support: {others}." if others else ""
    return (f"Support of the {many}", True, f"{every} of {len(table)} that chains found are in all chains.{rest}", "")


def predictive_items(fit: FactorizationEstimator, found: Check | None, files: Files, given: bool) -> Rows:
    """Whether releases simulated from the fit look like the one that was fitted."""
    if fit._reader.why_no_intervals:
        said = f"No check: {fit._reader.why_no_intervals}, and simulated releases would vary too little."
        return [("Simulated releases", False, said, "")]
    if found is None and given:
        said = "No check: none of these reports can be simulated, because their counts are given as ranges or flipped."
        return [("Simulated releases", False, said, "")]
    if found is None:
        return [("Simulated releases", False, "They are compared with the release.", again(files))]
    rows: Rows = []
    for each in found.statistics:
        seen, low, high = (each.shown(value) for value in (each.seen, each.low, each.high))
        simulated = f"{found.releases} simulated {found.release}s"
        said = f"{seen} in the {found.report}s; {low} to {high} in the middle 95% of {simulated}: "
        name = f"{each.name[0].upper()}{each.name[1:]}"
        rows.append((name, not each.fails, f"{said}{each.verdict}.", ""))
    return rows


def options_of(fit: FactorizationEstimator) -> str:
    """The options on the command line with which a model differs from the defaults, each followed by a space."""
    usual, method = signature(type(fit)).parameters, fit._method
    given = {name: getattr(fit, name) for name in OPTIONS} | {"method": method.name}
    given |= {name: value for name, value in own_choice(fit).items() if name in OPTIONS}
    differ = {name: value for name, value in given.items() if value != usual[name].default}
    if isinstance(method, Sampler) and method.weights != Sampler.weights:
        differ["weights"] = method.weights
    return "".join(f"--{name} {value} " for name, value in differ.items())


def sensitivity_items(fit: FactorizationEstimator, files: Files) -> Rows:
    """Whether results depend on the number of components, and on the priors."""
    kind = type(fit).__name__
    fitted, option = COMMANDS.get(kind, ("", ""))
    number = 0 if fit._sized_by is None else size_of(fit)
    sizes = ",".join(map(str, (number, *fit._n_upper)))  # of all layers
    numbers = sorted({max(1, number // 2), number, 2 * number})
    listed = ",".join(map(str, numbers))
    compare = f"countveil compare {files.release} {option} {listed} --seed 1" if option else ""
    if not option and fit._sized_by is not None:
        models = ", ".join(f"cv.{kind}({n})" for n in numbers)
        compare = f"cv.compare(release, [{models}], seed=1)"
    chosen = CHOSEN in fit.posterior.attrs
    said = f"{choice_in_words(fit)} {comparison_of(fit)}" if chosen else "Not compared in this fit."
    said = f"{said.strip()} {merged_in_words(fit)}"
    other = 0.1 if getattr(fit, "prior_shape", None) in (None, "learned") else "learned"
    refit = (
        f"countveil fit {fitted} {files.release} -o other.nc {option} {sizes} {options_of(fit)}--seed {fit.seed_} "
        f"--prior-shape {other}\n"
        f"countveil browse {files.fit} other.nc -o both.html"
        if fitted
        else ""
    )
    return [
        ("Number of components", chosen, said.strip(), "" if chosen else compare),
        (
            "Priors",
            False,
            "Fit again with a different prior and all other options unchanged, and report what changes.",
            refit,
        ),
    ]


def comparison_of(fit: FactorizationEstimator) -> str:
    """The comparison that chose the number of components, where it is in memory."""
    found = getattr(fit, "selection_", None)
    return "" if found is None else str(found.verdict)


def closing_items(fit: FactorizationEstimator) -> Rows:
    """What intervals are printed and what they hold, and what to cite."""
    why = fit._reader.why_no_intervals
    said = f"None: {why}." if why else f"Equal-tailed 90% intervals, unless stated otherwise. {COVERAGE}"
    made = str(fit.posterior.attrs["library"])
    cited = f"{made}; this list by countveil {__version__}. Method: {PAPER} (CITATION.cff)."
    return [("Intervals", True, said, ""), ("To cite", True, cited, "")]
