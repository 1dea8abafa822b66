"""Progress where somebody watches: a terminal, or a notebook, of which a stand-in is made here."""

import re
import sys
import threading
from html import unescape
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import countveil as cv
from countveil.inference import progress
from countveil.inference.progress import NotebookProgress, progress_bar


@pytest.fixture
def notebook(monkeypatch):
    """What a notebook showed, in order; the first is the output, the rest what it was drawn anew with."""
    shown = []
    display = ModuleType("IPython.display")
    display.HTML = lambda text: text
    handle = SimpleNamespace(update=shown.append)

    def made(text, display_id):
        assert display_id is True
        shown.append(text)
        return handle

    display.display = made
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    return shown


def words(page):
    return " ".join(unescape(re.sub(r"<[^>]*>", "", page)).split())


def test_a_fit_in_a_notebook_shows_one_output_drawn_anew(notebook, recwarn, capsys):
    counts = np.random.default_rng(1).poisson(2.0, (6, 5))
    cv.TopicModel(2, draws=6, tune=4, chains=2, seed=1, threads=2).fit(cv.PrivatizedCounts(counts, 0.4))
    assert len(notebook) >= 2
    assert re.search(r"chain 1 drawing ━+ 10/10 sweeps, .* chain 2 drawing ━+ 10/10", words(notebook[-1]))
    assert "<pre" in notebook[-1]
    assert not recwarn.list
    assert "".join(capsys.readouterr()) == ""


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_an_optimiser_and_the_stochastic_method_show_theirs(notebook):
    counts = np.random.default_rng(1).poisson(2.0, (6, 5))
    for method, unit in (("em", "sweeps"), ("svi", "rows")):
        cv.TopicModel(2, method=method, seed=1, max_iter=5).fit(cv.PrivatizedCounts(counts, 0.4))
        assert unit in words(notebook[-1])


def test_a_comparison_shows_its_fits(notebook, recwarn):
    counts = np.random.default_rng(1).poisson(2.0, (6, 5))
    cv.compare(cv.PrivatizedCounts(counts, 0.4), [cv.TopicModel(2)], 2, 1, draws=2, tune=2, threads=1)
    assert re.search(r"comparing ━+ 2/2 fits, ", words(notebook[-1]))
    assert not recwarn.list


def test_a_notebook_is_drawn_a_few_times_a_second_at_most(notebook, monkeypatch):
    clock = iter(np.arange(0.0, 1000.0, 0.01))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with progress_bar(None) as bar:
        assert isinstance(bar, NotebookProgress)
        task = bar.add_task("chain", total=100, score="")
        for done in range(100):
            bar.update(task, completed=done + 1)
    assert len(notebook) == 1 + 5 + 1  # at the start; five times in the second that it takes; at the end
    assert "100/100" in words(notebook[-1])


def test_threads_that_report_at_once_break_nothing(notebook):
    with progress_bar(True) as bar:
        tasks = [bar.add_task(f"chain {c}", total=200, score="") for c in range(4)]

        def run(task):
            for done in range(200):
                bar.update(task, completed=done + 1)

        threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert words(notebook[-1]).count("200/200") == 4


def test_what_is_not_to_be_shown_is_not(notebook):
    counts = np.random.default_rng(1).poisson(2.0, (6, 5))
    model = cv.TopicModel(2, draws=2, tune=2, chains=1, seed=1, progress=False)
    model.fit(cv.PrivatizedCounts(counts, 0.4))
    assert notebook == []


def test_outside_of_notebooks_a_terminal_is_asked_for():
    assert progress_bar(None).disable
    assert not progress_bar(True).disable
    assert progress_bar(False).disable
    assert not isinstance(progress_bar(True), NotebookProgress)
