"""Small fits whose labels are hostile: names of people, and words."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from tests.report.conftest import NASTY, QUICK, WORDS, release_of

PEOPLE = ["Ada Lovelace", "=HYPERLINK(1)", "</script><script>alert(3)</script>", *(f"Person {i}" for i in range(9))]
FORMULA = "=1+1"


@pytest.fixture(scope="session")
def people():
    counts = np.random.default_rng(1).poisson(2.0, (12, len(WORDS) + 1))
    return release_of(pd.DataFrame(counts, index=PEOPLE, columns=[*WORDS, FORMULA]))


@pytest.fixture(scope="session")
def fit(people):
    return cv.TopicModel(3, **QUICK).fit(people)


@pytest.fixture(scope="session")
def column_fit(people):
    return cv.TopicModel(2, **QUICK | {"chains": 1}, dispersion="column").fit(people)


def data_of(page):
    """What the page holds."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def title_of(kind, component):
    """What the page calls a component."""
    name = f": {component['name']}" if component["name"] else ""
    return f"{kind['one'].capitalize()} {component['number']}{name}"


__all__ = ["FORMULA", "NASTY", "PEOPLE", "data_of", "title_of"]
