"""Models are imported without SciPy's distributions, which are whole for whoever asks for them."""

import subprocess
import sys

from countveil.common.late import Late

CODE = """
import sys
import countveil.fit
assert "sklearn.base" in sys.modules
assert "scipy.stats" not in sys.modules
from sklearn.utils.fixes import _mode
assert _mode([1, 2, 2])[0] == 2
import scipy.stats
assert scipy.stats.norm.cdf(0.0) == 0.5
assert type(sys.modules["scipy.stats"]).__name__ == "module"
"""


def test_models_do_not_wait_for_distributions():
    subprocess.run([sys.executable, "-c", CODE], check=True)


def test_who_asks_the_empty_module_gets_the_true_one():
    from scipy import stats

    assert Late("scipy.stats").norm is stats.norm
