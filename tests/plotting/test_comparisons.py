import numpy as np
import pandas as pd
import pytest

from countveil import plotting

TABLE = pd.DataFrame(
    {"model": ["K=5", "K=$20$"], "difference": [-1.5, 0.0], "standard_error": [0.5, 0.0], "score": [1.0, 2.0]}
)


def test_differences_are_drawn_with_two_standard_errors():
    ax = plotting.differences(TABLE)
    middle, _, (bars,) = ax.containers[0].lines
    np.testing.assert_allclose(middle.get_xdata(), [-1.5, 0.0])
    np.testing.assert_allclose([s[:, 0] for s in bars.get_segments()], [[-2.5, -0.5], [0.0, 0.0]])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["K=5", r"K=\$20\$"]
    assert "2 standard errors" in ax.get_xlabel()


def test_a_table_of_something_else_is_refused():
    with pytest.raises(ValueError, match="got no standard_error"):
        plotting.differences(TABLE.drop(columns="standard_error"))
