"""Loops that are compiled for the recipes' toys are not kept on disk: who loads them elsewhere has no such classes."""

import sys

import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    for name, module in list(sys.modules.items()):
        if name.startswith("countveil."):
            for value in vars(module).values():
                if isinstance(value, Dispatcher):
                    monkeypatch.setattr(value, "_cache", NullCache())
