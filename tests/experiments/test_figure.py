import sys

import pytest

from countveil.experiments.figure import save_figure


def test_without_matplotlib_the_error_says_what_to_install(watched, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[plots\]'"):
        save_figure(watched[0].fits, tmp_path / "scores.png")
