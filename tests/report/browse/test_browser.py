"""The page in Chromium, wide and narrow, light and dark: every view, every control, and nothing beside them."""

import csv
import io
import json

import axe_core_python
import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import countveil as cv
from countveil.fit import load
from countveil.fit.naming import relabel_from
from countveil.report.browse import render
from tests.report.browse.conftest import FORMULA, PEOPLE, data_of, title_of
from tests.report.conftest import LONG, NASTY, QUICK
from tests.study.page import browser as b

pytestmark = pytest.mark.long

VIEWS = ["components", "members", "rows", "map", "bursts", "compare", "about"]
AXE = "axe.run().then((found) => JSON.stringify(found.violations.map((v) => [v.impact, v.id, v.nodes[0].html])))"
CUT = """[...document.querySelectorAll("body *")].filter((each) => each.checkVisibility()
  && !each.closest(".skip, option") && each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((each) => each.outerHTML.slice(0, 80))"""
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def written(tmp_path_factory, fit, column_fit):
    """Pages that were written, and what they hold."""
    folder = tmp_path_factory.mktemp("pages")
    page = render(fit, column_fit, rows="labels", names=("first", "second"), members=6)
    (folder / "page.html").write_text(page, encoding="utf-8")
    changed = page.replace("const SHOWN = 40", "const SHOWN = 41")
    (folder / "changed.html").write_text(changed, encoding="utf-8")
    return folder, data_of(page)


def found(driver, selector):
    return [each.get_property("textContent") for each in driver.find_elements("css selector", selector)]


def opened(driver, page):
    driver.get(page.as_uri())
    with open(next(iter(axe_core_python.__path__)) + "/axe.min.js", encoding="utf-8") as code:
        b.evaluated(driver, code.read() + "; 0")


def view(driver, name):
    b.press(driver, f"tab-{name}")


def chosen(driver, name, value):
    Select(b.at(driver, name)).select_by_value(str(value))


def saved(driver, folder, name):
    """The rows of a CSV file that is downloaded."""
    path = folder / "down" / f"{name}.csv"
    b.press(driver, "download")
    b.until(driver, lambda: path.is_file() and path.stat().st_size)
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


def check_components(driver, data, folder):
    kind = data["fits"][0]["kinds"][0]
    titles = [title_of(kind, each) for each in kind["components"]]
    assert found(driver, "#components strong") == sorted(titles)
    assert found(driver, "#detail h2") == titles[:1] == ["Topic 0"]
    (words,) = kind["lists"]
    top = [words["labels"][v] for v in words["top"][0]]
    assert found(driver, "#detail .bars .name") == top
    lifts = [next(e[1] for e in words["entries"][v] if e[0] == 0) / words["share"][v] for v in words["top"][0]]
    for text, lift in zip(found(driver, "#detail .bars .numbers"), lifts, strict=True):
        assert float(text.split(", lift ")[1]) == pytest.approx(lift, rel=0.06)
    chosen(driver, "members-by", "relevant")
    assert found(driver, "#detail .bars .name") == [words["labels"][v] for v in words["relevant"][0]]
    chosen(driver, "members-by", "top")
    assert found(driver, "#detail .bars .name") == top
    lengths = [float(each.get_attribute("x")) for each in driver.find_elements("css selector", "#detail .dot")]
    most = max(e[3] for own in data["fits"] for es in own["kinds"][0]["lists"][0]["entries"] for e in es)
    values = [next(e[1] for e in words["entries"][v] if e[0] == 0) for v in words["top"][0]]
    assert lengths == pytest.approx([max(100 * value / most - 0.6, 0) for value in values], abs=1e-6)
    assert found(driver, "#components strong") == titles, "in the order of all lists"
    assert b.at(driver, "order").get_property("value") == "support"
    chosen(driver, "order", "size")
    sizes = [each["share"][0] for each in kind["components"]]
    assert found(driver, "#components strong") == [titles[k] for k in sorted(range(3), key=lambda k: -sizes[k])]
    chosen(driver, "order", "number")
    assert found(driver, "#components strong") == sorted(titles)
    driver.find_elements("css selector", ".component")[0].send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert found(driver, "#detail h2") == ["Topic 1"]
    assert found(driver, "[aria-current=true] strong") == ["Topic 1"]
    b.at(driver, "filter").send_keys("topic 2")
    assert found(driver, "#components strong") == ["Topic 2"]
    b.at(driver, "filter").send_keys("?")
    assert "No topic has" in found(driver, "#components")[0]
    head, *rows = saved(driver, folder, "topics")
    assert head == ["topic", "support", "prevalence", "lower", "upper"]
    assert [float(x) for x in rows[0][2:]] == kind["components"][0]["share"]


def check_members(driver, data, folder):
    view(driver, "members")
    (words,) = data["fits"][0]["kinds"][0]["lists"]
    assert found(driver, "#results h2") == words["labels"]
    b.at(driver, "search").send_keys("ALERT(1)")
    assert found(driver, "#results h2") == [NASTY]
    v = words["labels"].index(NASTY)
    best = max(words["entries"][v], key=lambda entry: entry[1])
    kind = data["fits"][0]["kinds"][0]
    title = title_of(kind, kind["components"][best[0]])
    assert found(driver, "#results .link")[0] == title
    head, *rows = saved(driver, folder, "words")
    assert head == ["word", "topic", "probability of the word in the topic", "lower", "upper", "lift"]
    assert ["'" + FORMULA] in [row[:1] for row in rows]
    assert NASTY in [row[0] for row in rows]
    driver.find_elements("css selector", "#results .link")[0].click()
    assert found(driver, "#detail h2") == [title]
    driver.find_elements("css selector", "#detail .bars .link")[0].click()
    assert found(driver, "[aria-selected=true]") == ["Words"]
    assert found(driver, "#results h2")[0] == b.at(driver, "search").get_property("value")
    b.entered(driver, "search", "nowhere")
    assert b.said(driver) == "Nothing found for “nowhere”."


def check_rows(driver, data, folder):
    view(driver, "components")
    b.press(driver, "most-of-it")
    rows, place = data["fits"][0]["rows"], int(b.at(driver, "rows-by").get_property("value"))
    assert found(driver, "#results h2") == [rows["labels"][d] for d in rows["top"][place]]
    chosen(driver, "rows-by", "")
    assert found(driver, "#results h2") == PEOPLE
    b.at(driver, "row-search").send_keys("script")
    assert found(driver, "#results h2") == [PEOPLE[2]]
    head, *lines = saved(driver, folder, "documents")
    assert head == ["doc", "topic", "share", "lower", "upper"]
    assert ["'" + PEOPLE[1]] in [row[:1] for row in lines]


def check_two_fits(driver, data, folder):
    view(driver, "compare")
    ours, theirs = ([title_of(k, c) for c in k["components"]] for k in (each["kinds"][0] for each in data["fits"]))
    pairs = [f"{ours[i]} and {theirs[j]}" for i, j, _, _ in data["pairs"][0]]
    assert found(driver, "#results h2") == pairs
    driver.find_elements("css selector", ".beside-button")[0].click()
    assert len(driver.find_elements("css selector", ".pair .second")) >= 6
    assert driver.switch_to.active_element.get_attribute("class") == "pair"
    assert len(saved(driver, folder, "comparison")) == 1 + len(pairs)
    view(driver, "bursts")
    chosen(driver, "fit", 1)
    head, *rows = saved(driver, folder, "dispersions")
    assert head == ["word", "p", "lower", "upper", "variance_over_mean"]
    p = [float(row[1]) for row in rows]
    assert p == sorted(p, reverse=True)
    b.at(driver, "burst-search").send_keys("don")
    assert [len(each) for each in found(driver, "#results .name")] == [len(LONG)]
    chosen(driver, "fit", 0)


def check_map(driver, data, folder):
    view(driver, "map")
    components = data["fits"][0]["kinds"][0]["components"]
    drawn = driver.find_elements("css selector", ".map [role=button]")
    assert len(drawn) == len(components)
    titles = sorted(each.get_attribute("aria-label").split(",")[0] for each in drawn)
    assert titles == [f"Topic {each['number']}" for each in sorted(components, key=lambda c: c["number"])]
    drawn[-1].send_keys(Keys.ENTER)
    title = drawn_title = found(driver, "#detail h2")[0]
    assert title in titles
    nearest = data["fits"][0]["kinds"][0]["map"]["nearest"][[f"Topic {c['number']}" for c in components].index(title)]
    assert found(driver, "#nearest .link") == [f"Topic {components[j]['number']}" for j in nearest]
    driver.find_elements("css selector", "#nearest .link")[0].click()
    assert found(driver, "#detail h2") != [drawn_title]


def check_every_view_is_marked(driver, data, folder):
    """The fits were stopped after ten draws."""
    for name in VIEWS:
        view(driver, name)
        assert len(found(driver, "#view .untrusted")) == (2 if name == "compare" else 1), name


def check_keyboard(driver):
    view(driver, "components")
    keys = b.at(driver, "tab-components")
    keys.send_keys(Keys.ARROW_RIGHT)
    assert driver.switch_to.active_element.get_attribute("id") == "tab-members"
    driver.switch_to.active_element.send_keys(Keys.END)
    assert found(driver, "[aria-selected=true]") == ["About this fit"]
    assert "How it was made" in found(driver, "#view")[0]
    driver.switch_to.active_element.send_keys("/")
    assert driver.switch_to.active_element.get_attribute("id") == "search"


def check_every_view(driver):
    for name in VIEWS:
        view(driver, name)
        b.evaluated(driver, FRAMES)
        assert json.loads(b.evaluated(driver, AXE)) == [], name
        assert b.evaluated(driver, CUT) == [], name
        assert b.evaluated(driver, "document.documentElement.scrollWidth <= innerWidth"), name


def test_every_view_and_control_on_a_wide_light_screen(written, tmp_path):
    folder, data = written
    with b.browser(tmp_path, 1400) as driver:
        opened(driver, folder / "page.html")
        for check in (
            check_components,
            check_members,
            check_rows,
            check_two_fits,
            check_map,
            check_every_view_is_marked,
        ):
            check(driver, data, tmp_path)
        check_keyboard(driver)
        check_every_view(driver)
        assert driver.get_log("browser") == []
        assert [url for url in b.requests(driver) if not url.startswith(("file:", "blob:"))] == []
        driver.get((folder / "changed.html").as_uri())
        assert found(driver, "#tabs button") == []
        assert "Content Security Policy" in driver.get_log("browser")[0]["message"]


def test_the_same_on_a_dark_phone(written, tmp_path):
    folder, _ = written
    with b.browser(tmp_path, 390, dark=True) as driver:
        opened(driver, folder / "page.html")
        assert b.evaluated(driver, "getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
        first = driver.find_elements("css selector", ".component")[0]
        assert first.location["y"] < 700
        driver.find_elements("css selector", ".component")[1].click()
        assert driver.switch_to.active_element.get_attribute("id") == "detail"
        b.press(driver, "back")
        assert "component" in driver.switch_to.active_element.get_attribute("class")
        check_every_view(driver)
        driver.find_elements("css selector", "#tab-compare")[0].click()
        driver.find_elements("css selector", ".beside-button")[0].click()
        assert b.evaluated(driver, CUT) == []
        assert driver.get_log("browser") == []


def test_effects_stand_below_the_members_of_a_component_on_a_dark_phone(people, tmp_path):
    rows = pd.DataFrame({"party": ["R", "D"] * 6, "year": np.arange(12.0)}, index=PEOPLE)
    fit = cv.TopicModel(2, prevalence="~ party + year", **QUICK).fit(people, covariates=rows)
    fit.parts.relabel({0: "trade"})
    page = render(fit, members=3)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    first = data_of(page)["fits"][0]["kinds"][0]["components"][0]
    (heading, said), (second, pairs) = first["beside"]
    with b.browser(tmp_path, 390, dark=True) as driver:
        opened(driver, tmp_path / "page.html")
        assert found(driver, "#detail h2") == [f"Topic {first['number']}: trade"]
        assert found(driver, "#detail h3")[-2:] == [heading, second]
        assert heading == "Covariates: coefficient"
        names = ["party[T.R]", "year", "party: R less D", "year: 8 less 3"]
        assert found(driver, "#detail ul .name") == names
        assert found(driver, "#detail ul .numbers") == [value for _, value in said + pairs]
        assert "Topic 0: trade" in found(driver, "#components strong")
        assert json.loads(b.evaluated(driver, AXE)) == []
        assert b.evaluated(driver, CUT) == []


def test_names_given_on_the_page_are_those_of_the_fit_from_then_on(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    (tmp_path / "page.html").write_text(render(fit), encoding="utf-8")
    with b.browser(tmp_path, 1400) as driver:
        opened(driver, tmp_path / "page.html")
        assert not b.at(driver, "save-names").is_displayed()
        for number, name in ((0, "trade"), (1, '=cmd|"<b>x'), (2, "war")):
            driver.find_elements("css selector", ".component")[number].click()
            b.press(driver, "rename")
            driver.switch_to.active_element.send_keys(name, Keys.ENTER)
        b.press(driver, "rename")
        b.entered(driver, "new-name", "trade")
        b.press(driver, "keep-name")
        assert b.said(driver) == "Another topic has this name."
        b.at(driver, "new-name").send_keys(Keys.ESCAPE)
        assert found(driver, "#components strong") == ["Topic 0: trade", 'Topic 1: =cmd|"<b>x', "Topic 2: war"]
        b.press(driver, "rename")
        assert json.loads(b.evaluated(driver, AXE)) == []
        b.press(driver, "save-names")
        path = tmp_path / "down" / "names.json"
        b.until(driver, lambda: path.is_file() and path.stat().st_size)
        assert driver.get_log("browser") == []
    named = load(tmp_path / "fit.nc")
    relabel_from(named, path)
    assert named._reader.names_of() == {0: "trade", 1: '=cmd|"<b>x', 2: "war"}
