import sys

import numpy as np
import pytest
from PIL import Image

from countveil.experiments.figures import compressed, expanded, save_figure, save_heatmaps


def test_without_matplotlib_the_error_says_what_to_install(watched, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[plots\]'"):
        save_figure(watched[0].fits, tmp_path / "scores.png")


def test_the_colour_scale_can_be_undone():
    counts = np.array([0.0, 0.1, 1.0, 30.0])
    np.testing.assert_allclose(expanded(compressed(counts)), counts, rtol=1e-12)


def test_one_panel_for_each_matrix(tmp_path):
    panels = {"one": np.eye(3), "other": 2.0 * np.eye(3)}
    save_heatmaps(panels, ["ann", "bob", "cy"], 2.0, tmp_path / "found.png")
    with Image.open(tmp_path / "found.png") as image:
        assert image.size == (1950, 615)
