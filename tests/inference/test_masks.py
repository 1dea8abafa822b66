"""A masked cell leaves the likelihood: whatever stands under the mask, every method's fit is the same to the bit."""

import numpy as np
import pytest

import countveil as cv
from tests.joint import draw_reports

pytestmark = pytest.mark.long

SHORT = {"seed": 3, "threads": 1, "draws": 3, "tune": 4, "chains": 2}
FITS = {
    "gibbs": {"method": "gibbs"},
    "augmented-gibbs": {"method": "augmented-gibbs"},
    "cavi": {"method": cv.CAVI(max_iter=4)},
    "cavi, arithmetic": {"method": cv.CAVI(max_iter=4, expectation="arithmetic")},
    "bessel-cavi": {"method": cv.BesselCAVI(max_iter=4)},
    "bessel-cavi, mean": {"method": cv.BesselCAVI(max_iter=4, center="mean")},
    "svi": {"method": cv.SVI(passes=2, batch_rows=7)},
    "svi, geometric": {"method": cv.SVI(passes=2, batch_rows=7, expectation="geometric")},
    "em": {"method": cv.EM(max_iter=4)},
    "gibbs from em": {"method": "gibbs", "start": "em"},
}
RNG = np.random.default_rng(1)
ALPHAS = {
    "one alpha a row": np.array([0.0, *RNG.choice([0.3, 0.6], 17)]),
    "one alpha a cell": RNG.choice([0.0, 0.3, 0.6], (18, 12)),
}
MASK = RNG.random((18, 12)) < 0.15
REPORTS = draw_reports(RNG.gamma(0.5, 4.0, (18, 12)), np.array(0.3), RNG)


def arrays(fit):
    """Everything that a fit holds, by name."""
    return {
        f"{group}/{name}": values.to_numpy()
        for group, node in fit.posterior.children.items()
        for name, values in node.dataset.data_vars.items()
    }


@pytest.mark.filterwarnings("ignore:The reports contradict:countveil.inference.diagnostics.FitWarning")
@pytest.mark.filterwarnings("ignore:Not safe yet:countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize("alpha", ALPHAS.values(), ids=ALPHAS)
@pytest.mark.parametrize("options", FITS.values(), ids=FITS)
def test_what_is_under_the_mask_changes_nothing(options, alpha):
    exact = (alpha if alpha.ndim == 2 else alpha[:, None]) == 0.0
    reports = np.where(exact, np.abs(REPORTS), REPORTS)

    def fitted(values, mask=MASK):
        model = cv.TopicModel(3, **SHORT | options)
        return arrays(model.fit(cv.PrivatizedCounts(values, alpha, mask)))

    first = fitted(reports)
    assert {"posterior/theta", "posterior/phi"} <= first.keys()
    for name, found in fitted(np.where(MASK, np.nan, reports)).items():
        np.testing.assert_array_equal(found, first[name], err_msg=name)
    seen = MASK.copy()
    seen[np.unravel_index(np.argmax(MASK * reports), MASK.shape)] = False
    assert not np.array_equal(fitted(reports, seen)["posterior/phi"], first["posterior/phi"])
