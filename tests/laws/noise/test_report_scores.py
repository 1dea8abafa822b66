"""Tables of scores say what sums over counts do, at every rate and for every report that is proposed."""

import numpy as np
import pytest

from countveil.bridges import protected_counts
from countveil.inference.tokens import NO_CODES
from countveil.kernels.windows import WindowLaw
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.noise import report_scores
from tests.kernels.test_tokens import REPORTS
from tests.laws.noise.codes import kernels_of_reports
from tests.laws.noise.laws import CASES

pytestmark = pytest.mark.long

RATES = np.concatenate([[1e-300, 1e-9], np.geomspace(1e-7, 3e5, 300)])


@pytest.mark.parametrize("p", [None, 0.6, 0.97])
def test_scores_are_those_of_sums(p):
    likelihood = POISSON if p is None else NegativeBinomial(p)
    for name in ("random rounding", "cut geometric", "discrete"):
        mechanism, report = CASES[name][0], REPORTS[name]
        law = WindowLaw(kernels_of_reports(mechanism, [report]), likelihood.counts)
        tables = report_scores.scores_of(law, NO_CODES._replace(code_c=np.array([1])))
        found = [report_scores.tabled_score(law, tables, 0, rate) for rate in RATES]
        wanted = protected_counts.expected(np.full(RATES.size, report), RATES, mechanism, p).log_probability
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
