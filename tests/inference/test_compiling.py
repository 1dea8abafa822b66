import gc
import importlib.util
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.event import end_event, start_event, trigger_event

import countveil as cv
from countveil.inference import gibbs, svi
from countveil.inference.compiling import MESSAGE, MESSAGE_EACH_TIME, compiling_told
from countveil.kernels import keeping

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
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
