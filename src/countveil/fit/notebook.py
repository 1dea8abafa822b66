"""What a notebook shows about a fit: sizes, noise and settings, never a report or a count."""

from typing import TYPE_CHECKING, Any

import numpy as np

from countveil.inference.posterior import noise_of
from countveil.laws.noise import Noise
from countveil.privacy._text import card

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

NOT_PRIVATE = {"exact": "true counts, without noise", "naive": "noisy reports, taken for true counts"}


class ShownInNotebooks:
    """A table of facts once there is a fit; scikit-learn's own picture of the model before."""

    def _repr_html_inner(self) -> str:
        found: Any = self
        if hasattr(self, "posterior_"):
            return fit_card(found)
        return str(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle


def fit_card(fit: "FactorizationEstimator") -> str:
    """HTML of the facts of a fit; quick, so chains are not judged here."""
    tree, model, layout = fit._fitted()
    draws, facts = tree["posterior"], tree.attrs
    sizes = " × ".join(f"{draws.sizes[d]:,} {d}" for d in layout.dims_of(model.spec.output))
    latent = ", ".join(f"{draws.sizes[d]:,} {d}" for d in layout.dims_of(model.spec.latent))
    rows = [
        ("data", sizes),
        ("noise", in_words(*noise_of(tree), str(facts["observations"]), bool(facts["simulated_noise"]))),
        *([("reports imported from", str(facts["source"]))] if "source" in facts else []),
        ("parts", latent),
        (
            "draws",
            f"{draws.sizes['chain']} × {draws.sizes['draw']}, method {facts['method']}, seed {fit.seed_}",
        ),
        ("time", f"{fit.fit_seconds_:.1f} s{', interrupted' if fit.interrupted_ else ''}"),
    ]
    note = "diagnostics().verdict says whether to trust it; posterior has all draws, in ArviZ's layout."
    return card(f"{type(fit).__name__}, fitted", rows, note)


def in_words(noise: Noise, level: np.ndarray, kind: str, simulated: bool) -> str:
    """The noise of the data in words."""
    if kind in NOT_PRIVATE:
        return NOT_PRIVATE[kind]
    said = noise.in_words(level)
    return f"{said}, simulated: protects nobody" if simulated else said
