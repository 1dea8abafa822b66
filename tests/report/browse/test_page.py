import base64
import hashlib
import re

import pytest

from countveil.report.browse import render, write_browser
from tests.report.browse.conftest import NASTY, PEOPLE, data_of
from tests.report.conftest import WORDS
from tests.report.test_page import Page


@pytest.fixture(scope="module")
def page(fit):
    return render(fit, rows="labels", title="Mine & <b>yours")


def test_one_script_and_one_style_run_and_nothing_is_loaded(page):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for name, text in (("script-src", script), ("style-src", style)):
        code = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{code}'"
    assert rules["default-src"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttp|import\(", script)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert page.count("<script") == 2


def test_hostile_labels_are_data_alone(page):
    assert NASTY not in page
    assert PEOPLE[2] not in page
    assert "\u202e" not in page
    found = data_of(page)
    (words,) = found["fits"][0]["kinds"][0]["lists"]
    assert NASTY in words["labels"]
    assert {w for w in WORDS if w.isprintable()} <= set(words["labels"])
    assert found["fits"][0]["rows"]["labels"] == PEOPLE
    assert "<title>Mine &amp; &lt;b&gt;yours</title>" in page
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "Mine & <b>yours" in Page(outside).text


def test_rows_are_hidden_unless_asked_for(fit):
    for given in ({}, {"rows": "numbers"}):
        page = render(fit, **given)
        assert not any(name in page for name in ("Lovelace", "HYPERLINK", "Person 3"))
    assert (data_of(render(fit))["fits"][0]["rows"]) is None
    with pytest.raises(ValueError, match="rows must be one of hidden, numbers, labels, got 'names'"):
        render(fit, rows="names")
    with pytest.raises(ValueError, match="members must"):
        render(fit, members=0)


def test_the_same_fit_gives_the_same_page(fit, column_fit, tmp_path):
    write_browser(fit, tmp_path / "page.html", column_fit, names=("one", "two"))
    assert (tmp_path / "page.html").read_text("utf-8") == render(fit, column_fit, names=("one", "two"))
    found = data_of(render(fit, column_fit, names=("one", "two")))
    assert [each["name"] for each in found["fits"]] == ["one", "two"]
    assert "<h1>Topics, two fits</h1>" in render(fit, column_fit)
