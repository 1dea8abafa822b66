"""The code blocks of the pages run, one after another."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import countveil as cv

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings_that_there_are(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        found = page.parent / name if name else page
        assert found.is_file(), target
        if found.suffix != ".md":
            continue
        headings = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
        slugs = [re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings]
        assert not anchor or anchor in slugs, target


def test_the_reference_names_everything_public_once():
    named = re.findall(r"^::: (\S+)$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(named) == len(set(named))
    things = {}
    for path in named:
        home, _, name = path.rpartition(".")
        things[name] = getattr(import_module(home), name)
    for name in set(cv.__all__) - {"__version__", *cv._MODULES}:
        assert things[name] is getattr(cv, name), name
    from countveil import distributions, plotting

    for module in (distributions, plotting):
        assert set(module.__all__) <= set(things)


def test_every_page_is_in_the_site():
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {page.name for page in DOCS.glob("*.md")}
