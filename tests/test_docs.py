"""The code blocks of the pages run, one after another."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def run_page(name):
    """What the code blocks of a page leave behind."""
    left = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL):
        exec(block, left)
    return left


def test_the_page_on_inputs_runs():
    left = run_page("inputs.md")
    assert left["exact"].mode_shape == (2, 2, 2)
    assert left["noisy"].labels == (["kenya", "peru"], ["aid", "talk"])
    draws = left["fit"].posterior["posterior"]
    assert draws["action"].to_numpy().tolist() == ["aid", "talk"]
    assert left["topics"][-1].posterior["posterior"]["word"].to_numpy().tolist() == left["words"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short chains under fresh noise
def test_the_page_on_models_runs():
    left = run_page("models.md")
    assert left["held"].sum() == 8 * 5
    assert left["error"] < 3.0
    assert left["fit"].posterior["posterior"]["actor"].to_numpy().tolist() == left["names"]
    assert left["tucker"].posterior["posterior"]["core"].shape[2:] == (2, 2, 2)
    assert left["given"].rate().shape == (20, 6)


def test_the_page_on_reports_runs(tmp_path, monkeypatch):
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    left = run_page("reports.md")
    pyplot.close("all")
    assert left["release"].column_labels == tuple(left["words"])
    assert "Topic 1" in (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert (tmp_path / "topics.png").read_bytes().startswith(b"\x89PNG")
