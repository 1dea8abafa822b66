"""What was promised to those who gave their counts, in words."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from countveil.data.joining import together
from countveil.fit.base import FactorizationEstimator
from countveil.inference.posterior import noise_of
from countveil.laws.noise import TWO_SIDED_GEOMETRIC, AnyMechanismNoise, Noise
from countveil.privacy import PrivacyLevel, Release, promise
from countveil.privacy.exact import rounded_up, short
from countveil.privacy.level import Level

Releases = tuple[Release, ...]

DISTANCES = (1, 2, 5, 10, 50)


class Promise(NamedTuple):
    """Paragraphs on what is protected, and how well counts can be told apart (distance, factor, right guesses)."""

    kind: str  # private, simulated, exact or naive
    headline: str
    paragraphs: list[str]
    distances: list[tuple[str, str, str]]

    @property
    def heading(self) -> str:
        """The heading of the paragraphs."""
        promised = PRIVATE in self.paragraphs
        return "What was promised to those who gave their counts" if promised else "What was done to the counts"

    @property
    def seen(self) -> str:
        """How the counts were seen, after their size."""
        if self.kind == "exact":
            return "seen as they are"
        return "seen through noise" if PRIVATE in self.paragraphs or self.kind != "private" else "seen through reports"


PRIVATE = (
    "Random noise was added to the counts, zeros included, before anybody but their owner saw them. This page was "
    "made only from the noisy reports, and nothing on it can reveal more about anybody than they do."
)
FROM_REPORTS = "This page was made only from the reports, and nothing on it can reveal more about anybody than they do."
WITH_TOTALS = "reports, and", "reports and totals published with them, and"
"""What fits that used totals replace in the two."""
IMPORTED = "The reports were imported from: {source}. Whoever imported them vouches for what was done to the counts."
SEVERAL = (
    "Some records have several reports. Together these protect less than each does by itself: epsilon/N adds up over "
    "all reports of a record, and so does rho."
)
SIMULATED = (
    "The noise was simulated for research, by a generator with a seed: it protects nobody. What follows would "
    "hold for real noise."
)


def promise_of(fit: FactorizationEstimator, *releases: Release) -> Promise:
    """What the fit's facts, and its release, or those that were joined for it, say about protection."""
    facts = fit.posterior.attrs
    kind = str(facts["observations"])
    noise, level = noise_of(fit.posterior)
    if kind == "naive":
        said = "This fit treats noisy reports as true counts. It is for comparison; do not use its results."
        return Promise("naive", "Noise ignored.", [said], [])
    if kind == "exact" or not level.any():
        said = "This fit uses true counts without noise. Nothing here protects anybody."
        return Promise("exact", "No protection.", [said], [])
    if noise is TWO_SIDED_GEOMETRIC:
        found = _of_level(np.unique(level), () if "source" in facts else releases)
    elif isinstance(noise, AnyMechanismNoise):
        found = _of_mechanisms(fit, noise, level, releases)
    else:
        found = _of_mechanism(noise, level, releases)
    if "source" in facts:
        imported = IMPORTED.format(source=facts["source"])
        found = found._replace(headline=imported, paragraphs=[FROM_REPORTS, *found.paragraphs[1:]])
    if "promised_together" in facts:
        together = str(facts["promised_together"]).strip()
        found = found._replace(paragraphs=[*found.paragraphs, f"{SEVERAL} {together}".strip()])
    if "exact_totals" in facts or "noisy_totals" in facts:
        first = found.paragraphs[0].replace(*WITH_TOTALS)
        found = found._replace(paragraphs=[first, *found.paragraphs[1:]])
    if facts["simulated_noise"]:
        paragraphs = [SIMULATED, *found.paragraphs[1:]]
        return Promise("simulated", "Simulated noise: nobody is protected.", paragraphs, found.distances)
    return found


def described(releases: Releases) -> list[str]:
    """What releases say of themselves, a paragraph each; one for those that say the same."""
    said = [each.describe() for each in releases]
    if len(set(said)) == 1:
        which = "In the release's own words" if len(said) == 1 else f"In the words of all {len(said)} releases"
        return [f"{which}: {said[0]}"]
    return [f"In the words of release {place} of {len(said)}: {each}" for place, each in enumerate(said, start=1)]


def _of_level(alpha: np.ndarray, releases: Releases) -> Promise:
    """What two-sided geometric noise of these strengths promises."""
    weakest, words = _levels(alpha, releases)
    distances = [(str(d), _factor(weakest, d), _guesses(weakest, d)) for d in DISTANCES]
    return Promise("private", _headline(weakest, alpha), [PRIVATE, *words], distances)


def _of_mechanisms(
    fit: FactorizationEstimator, noise: AnyMechanismNoise, level: np.ndarray, releases: Releases
) -> Promise:
    """What the mechanisms say: those of a release that keep levels, or those that the fit's maker has stated.

    The headline is of what all reports of the least protected record promise together.
    """
    kept: list[Level] = [found for each in noise.mechanisms if (found := PrivacyLevel.kept_by(each)) is not None]
    if releases and len(kept) == len(noise.mechanisms):
        if len(releases) > 1:
            rows = tuple(map(str, next(iter(fit._reader.axes.values()))))
            kept += [each for each in together(releases, rows, len(rows)) if each is not None]
        weakest = max(kept, key=lambda found: found.kept_rho)
        hidden = weakest.hides()
        headline = f"Every count got noise, but it hides {hidden}." if hidden else "Every count was protected by noise."
        return Promise("private", headline, [PRIVATE, *described(releases)], [])
    headline = f"The counts were protected by {noise.in_words(level)}, as whoever made this fit has stated."
    words = [each.describe() for each in noise.mechanisms]
    return Promise("private", headline, [FROM_REPORTS, *words], [])


def _of_mechanism(noise: Noise, level: np.ndarray, releases: Releases) -> Promise:
    """What is known about another mechanism: its name and level, and the release's own words."""
    low, high = float(level.min()), float(level.max())
    strength = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    stated = (
        f"The mechanism is {noise.mechanism}, with {noise.level} {strength}. It states no level of privacy, so this "
        "page cannot say how well two sets of counts can be told apart."
    )
    headline = f"The counts were reported by the mechanism {noise.mechanism}, which states no level of privacy."
    return Promise("private", headline, [FROM_REPORTS, stated, *described(releases)], [])


def _headline(weakest: PrivacyLevel, alpha: np.ndarray) -> str:
    if (alpha == 0.0).any():
        return "Some counts carry no noise, and are not protected."
    if hidden := weakest.hides():
        return f"Every count got noise, but it hides {hidden}."
    return "Every count was protected by noise."


def _levels(alpha: np.ndarray, releases: Releases) -> tuple[PrivacyLevel, list[str]]:
    """The least protective level and what is said about it."""
    if not releases:
        rate = -math.log(float(alpha[alpha > 0.0].min()))
        weakest = PrivacyLevel(Fraction(rounded_up(rate)), 1)
        words = [
            "The fit keeps the strength of the noise, not the level at which the promise was stated, so "
            "the promise is stated here for a difference of one count. " + weakest.describe()
        ]
    else:
        every = [each.levels for each in releases]
        stated = [level for kept in every for level in ((kept,) if isinstance(kept, Level) else kept)]
        levels = [level for level in stated if isinstance(level, PrivacyLevel)]
        weakest = max(levels, key=lambda level: level.rate)
        words = [f"The level is N = {short(weakest.precision)}, epsilon = {short(weakest.epsilon)}."]
        words = [f"{words[0]} {weakest.describe()}"]
    if (alpha == 0.0).any():
        words.append("Some counts carry no noise at all and are not protected.")
    if np.count_nonzero(alpha) > 1:
        words.append(
            f"Levels differ between records: the noise's alpha ranges from {alpha[alpha > 0].min():.4g} (least "
            f"protected) to {alpha.max():.4g} (most). These statements hold for the least protected."
        )
    return weakest, words


def _factor(level: PrivacyLevel, distance: int) -> str:
    exponent = float(level.epsilon_at(distance))
    factor = math.exp(min(exponent, 700.0))
    if factor > 1e6:
        return "more than a million times"
    return f"{factor:.3g} times" if factor < 1000 else f"{factor:,.0f} times"


def _guesses(level: PrivacyLevel, distance: int) -> str:
    """How often the best guess between two equally likely sets of counts can be right."""
    return f"at most {promise.percent(promise.wrong_guesses(level.rate, distance))}"
