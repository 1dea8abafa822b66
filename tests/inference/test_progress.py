"""Progress where somebody watches: a terminal, or a notebook, of which a stand-in is made here."""

import gc
import importlib.util
import re
import subprocess
import sys
import threading
from html import unescape
from types import ModuleType, SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core.event import end_event, start_event, trigger_event

import countveil as cv
from countveil.inference import gibbs, progress, svi
from countveil.inference.progress import MESSAGE, MESSAGE_EACH_TIME, NotebookProgress, compiling_told, progress_bar
from countveil.kernels import keeping


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
    given = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "threads": 2}
    cv.TopicModel(2, **given, progress=False).fit(cv.PrivatizedCounts(counts, 0.4))  # is told of, where it compiles
    capsys.readouterr()
    cv.TopicModel(2, **given).fit(cv.PrivatizedCounts(counts, 0.4))
    assert len(notebook) >= 2
    assert re.search(r"chain 1 drawing ━+ 10/10 sweeps, .* chain 2 drawing ━+ 10/10", words(notebook[-1]))
    assert "<pre" in notebook[-1]
    assert not recwarn.list
    assert "".join(capsys.readouterr()) == ""


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_an_optimiser_and_the_stochastic_method_show_theirs(notebook):
    counts = np.random.default_rng(1).poisson(2.0, (6, 5))
    for method, unit in ((cv.EM(max_iter=5), "sweeps"), (cv.SVI(), "rows")):
        cv.TopicModel(2, method=method, seed=1).fit(cv.PrivatizedCounts(counts, 0.4))
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


SOURCE = "from numba import njit\n@njit(cache=True)\ndef more(x):\n    return x + 1\n"


def loaded(path):
    """A module from its file, as another process would load it."""
    spec = importlib.util.spec_from_file_location("compiled_once", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_compilation_is_told_of_once_and_loading_is_not(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "compiled_once.py"
    path.write_text(SOURCE)
    with compiling_told(True):
        module = loaded(path)
        assert (module.more(1), module.more(1.0), module.more(2)) == (2, 2.0, 3)
    assert capsys.readouterr().err == MESSAGE + "\n"
    with compiling_told(True):
        assert (loaded(path).more(1), loaded(path).more(1.0)) == (2, 2.0)
    assert capsys.readouterr().err == ""


def test_nobody_is_promised_what_is_not_kept(monkeypatch, capsys):
    monkeypatch.setattr(keeping, "told", True)
    with compiling_told(True), trigger_event("numba:compile"):
        pass
    assert capsys.readouterr().err == MESSAGE_EACH_TIME + "\n"


@pytest.mark.parametrize("show", [False, None])
def test_nobody_is_told_who_does_not_watch(show, capsys):
    with compiling_told(show), trigger_event("numba:compile"):
        pass
    assert capsys.readouterr().err == ""


def test_no_garbage_is_collected_while_a_function_and_what_it_calls_are_compiled():
    seen = []
    with compiling_told(False):
        with trigger_event("numba:compile"):
            with trigger_event("numba:compile"):
                seen.append(gc.isenabled())
            seen.append(gc.isenabled())
        seen.append(gc.isenabled())
    assert seen == [False, False, True]


def test_garbage_is_collected_again_after_a_fit_that_ends_within_a_compilation():
    def interrupted():
        with compiling_told(False):
            start_event("numba:compile")
            assert not gc.isenabled()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert gc.isenabled()


def test_a_fit_that_begins_within_another_ones_compilation_waits_for_its_own_to_end():
    with compiling_told(False):
        end_event("numba:compile")
        with trigger_event("numba:compile"):
            assert not gc.isenabled()
        assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with compiling_told(False), trigger_event("numba:compile"):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_after_a_fit_nobody_is_told(capsys):
    with compiling_told(True):
        pass
    with trigger_event("numba:compile"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(("algorithm", "how"), [(gibbs, "fit"), (svi, "partial_fit")])
def test_a_fit_tells_whoever_sees_its_progress(algorithm, how, told, monkeypatch, capsys):
    def step(*arguments, real=algorithm.step):
        with trigger_event("numba:compile"):
            return real(*arguments)

    monkeypatch.setattr(algorithm, "step", step)
    method = "gibbs" if algorithm is gibbs else "svi"
    model = cv.TopicModel(2, method=method, draws=2, tune=1, chains=1, threads=1, seed=1, progress=told)
    getattr(model, how)(cv.ExactCounts(np.arange(12).reshape(4, 3)))
    assert (MESSAGE in capsys.readouterr().err) == told


@pytest.mark.long
def test_a_fit_does_not_wait_for_what_only_its_diagnosis_needs():
    code = "import sys, countveil as cv; cv.TopicModel; print('arviz_stats' in sys.modules)"
    assert run_alone(code) == "False"


def test_importing_the_library_imports_none_of_what_it_stands_on():
    code = "import sys, countveil; print(sorted(m for m in sys.modules if m.split('.')[0] in %r))"
    heavy = {"numpy", "scipy", "numba", "sklearn", "pandas", "xarray", "rich", "typer", "dask", "distributed"}
    assert run_alone(code % heavy) == "[]"


def run_alone(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
