import sys

import pytest
from sklearn.base import clone

import countveil as cv
from countveil.engines import dask as dask_engine
from countveil.engines import opening
from countveil.engines.dask import DaskEngine
from countveil.engines.opening import check_engine, opened

ADDRESS = "tcp://127.0.0.1:1"


@pytest.mark.parametrize("engine", ["Threads", "", "127.0.0.1:8786", 2, object()])
def test_an_engine_is_a_name_or_an_address(engine):
    with pytest.raises(ValueError, match="engine must be None, 'threads', 'dask' or the address of a scheduler"):
        check_engine(engine)
    with pytest.raises(ValueError, match="engine must be"):
        cv.TopicModel(2, engine=engine).fit(cv.ExactCounts([[1, 2]]))


@pytest.mark.parametrize("engine", ["threads", ADDRESS])
def test_a_client_goes_with_no_other_engine(engine):
    with pytest.raises(ValueError, match="client requires engine None or 'dask', got engine"):
        check_engine(engine, object())


@pytest.mark.parametrize(("options", "client"), [({"engine": "dask"}, None), ({}, object())])
def test_batches_do_not_travel(options, client):
    model = cv.TopicModel(2, method="svi", **options)
    with pytest.raises(ValueError, match="'svi' requires engine None or 'threads'"):
        model.fit(cv.ExactCounts([[1, 2]]), client=client)


def test_an_engine_is_a_parameter_like_others():
    model = cv.BlockModel(2, engine=ADDRESS)
    assert clone(model).get_params()["engine"] == ADDRESS
    assert clone(model).set_params(engine="threads").engine == "threads"


@pytest.mark.parametrize("engine", [None, "threads"])
def test_threads_are_nothing_to_open(engine):
    with opened(engine, None, 2) as found:
        assert found is None


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[dask\]'"):
        cv.TopicModel(2, engine="dask").fit(cv.ExactCounts([[1, 2]]))


@pytest.mark.parametrize("address", [ADDRESS, "nothing://127.0.0.1:1", "tls://127.0.0.1:1"])
def test_a_scheduler_that_does_not_answer_is_an_error(address, monkeypatch):
    monkeypatch.setattr(opening, "CONNECT_SECONDS", 0.2)
    with (
        pytest.raises(ConnectionError, match=rf"scheduler must answer at {address} within 0\.2 s, got: "),
        opened(address, None, 1),
    ):
        pass


def test_the_client_made_last_is_taken(monkeypatch):
    made = object()
    monkeypatch.setattr("distributed.Client.current", lambda: made)
    monkeypatch.setattr(dask_engine, "check_workers", lambda client: None)
    with opened("dask", None, 1) as engine:
        assert isinstance(engine, DaskEngine)
        assert engine.client is made
