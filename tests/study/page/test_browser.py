"""The page in a browser: what a person does with it, and what must never happen."""

import json
import os
import random
import sys
import time

import axe_core_python
import pytest

import countveil as cv
from countveil.privacy import PrivacyLevel, counting, report, study, wording
from countveil.study.collect import collect
from countveil.study.page import page
from tests.study.page import browser as b
from tests.study.page.offices import LEVELS, STUDY, TEXT, WORDS, planned

pytestmark = pytest.mark.long


def test_text_in_report_out_and_not_a_request(driver, folder):
    made = b.report_of(driver, TEXT, "first")
    assert "Found 5 of the study's words (4 different)." in b.at(driver, "counted").text
    counted = counting.count_text(TEXT, WORDS)
    assert f"{counted.outside} ({counted.outside_kinds} different)" in b.at(driver, "counted").text
    found = report.decode(made, STUDY, "shown")
    assert found.level == LEVELS[0]
    assert b.downloaded(driver, folder) == made
    asked = [url for url in b.requests(driver) if not url.startswith("blob:")]
    assert asked == [file_url(folder)]
    assert driver.get_log("browser") == []


def test_the_words_are_listed_before_any_text_is_asked_for(driver):
    listed = b.at(driver, "listed")
    assert listed.text.split("\n")[-1] == ", ".join(WORDS)
    assert listed.location["y"] + listed.size["height"] <= b.at(driver, "forms").location["y"]


def file_url(folder):
    return (folder / "study.html").as_uri()


def test_counts_are_forgotten_when_the_record_changes(driver):
    b.entered(driver, "name", "changed")
    b.entered(driver, "record", TEXT)
    b.press(driver, "count")
    b.entered(driver, "record", "party")
    assert b.at(driver, "counted").text == ""
    b.press(driver, "make")
    b.until(driver, lambda: b.said(driver) == "Count your data first.")
    b.press(driver, "count")
    b.until(driver, lambda: "Found 1 of" in b.at(driver, "counted").text)
    b.at(driver, "form-counts").click()
    assert b.at(driver, "counted").text == ""


MANY = """
  const [texts, done] = arguments, at = (id) => document.getElementById(id), reports = [];
  const enter = (id, value) => {
    at(id).value = value;
    for (const kind of ["input", "change"]) at(id).dispatchEvent(new Event(kind, { bubbles: true }));
  };
  (async () => {
    for (const [number, text] of texts.entries()) {
      enter("name", `person ${number}`);
      enter("record", text);
      at("count").click();
      at("make").click();
      while (!at("report") || at("make").ariaBusy === "true") await new Promise((resolve) => setTimeout(resolve, 5));
      reports.push(at("report").textContent);
    }
    done(reports);
  })();
"""


def test_a_hundred_reports_are_collected_and_fitted(driver, tmp_path):
    generator = random.Random(2)
    b.chosen(driver, 2)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    texts = [" ".join(generator.choices(WORDS[:6] if n % 2 else WORDS[6:], k=60)) for n in range(100)]
    driver.set_script_timeout(120)
    for number, made in enumerate(driver.execute_async_script(MANY, texts)):
        (inbox / f"{number:03}.json").write_text(made)
    output = tmp_path / "release.npz"
    done = collect(STUDY, sorted(inbox.iterdir()), output, tmp_path / "table.csv")
    assert (done.accepted, done.refused) == (100, 0)
    model = cv.TopicModel(n_topics=2, seed=1, draws=200, tune=200, chains=1, threads=1)
    words = model.fit(cv.Release.load(output)).top_words(6)
    topics = {frozenset(topic) for _, topic in words.groupby("topic")["word"]}
    assert topics == {frozenset(WORDS[:6]), frozenset(WORDS[6:])}


def test_one_record_has_one_report_through_reload_and_crash(driver, file, folder):
    made = b.report_of(driver, TEXT, "steady")
    assert b.report_of(driver, "another text", "steady") == made
    b.opened(driver, file)
    assert b.report_of(driver, TEXT, "steady") == made
    assert "no new noise was drawn" in b.at(driver, "made").text
    assert b.report_of(driver, TEXT, "somebody else") != made
    for trial in range(8):
        name = f"crash {trial}"
        b.entered(driver, "name", name)
        b.entered(driver, "record", TEXT)
        b.press(driver, "count")
        driver.execute_script(
            "document.getElementById('make').click(); const until = performance.now() + arguments[0];"
            "setTimeout(() => location.reload(), arguments[0]);",
            trial,
        )
        time.sleep(0.3)
        b.until(driver, lambda: b.at(driver, "ledger").text)
        before = b.stored(driver)
        made = b.report_of(driver, TEXT, name)
        assert b.report_of(driver, TEXT, name) == made
        after = b.stored(driver)
        assert len(after) - len(before) <= 1
        assert after.count(made.decode()) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the browser's process in /proc")
def test_a_killed_browser_comes_back_with_the_same_report(tmp_path, file):
    shown = {}
    for trial, pause in enumerate((0.0, 0.03, None)):
        with b.browser(tmp_path) as driver:
            b.opened(driver, file)
            b.entered(driver, "name", f"killed {trial}")
            b.entered(driver, "record", TEXT)
            b.press(driver, "count")
            b.press(driver, "make")
            if pause is None:
                shown[trial] = b.shown_report(driver)
            else:
                time.sleep(pause)
            b.kill(driver)
    with b.browser(tmp_path) as driver:
        b.opened(driver, file)
        before = b.stored(driver)
        made = [b.report_of(driver, TEXT, f"killed {trial}") for trial in range(3)]
        assert made[2] == shown[2]
        assert before[-1].encode() == made[2]
        after = b.stored(driver)
        assert set(before) <= set(after) == {report.decode() for report in made}
        assert len(after) == 3


def test_two_tabs_at_once_draw_once(driver, file):
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    second = driver.current_window_handle
    b.opened(driver, file)
    try:
        for trial in range(6):
            for tab in (first, second):
                driver.switch_to.window(tab)
                b.entered(driver, "name", f"twins {trial}")
                b.entered(driver, "record", TEXT)
                b.press(driver, "count")
            start = time.time() * 1000 + 250
            for tab in (first, second):
                driver.switch_to.window(tab)
                driver.execute_script(
                    "setTimeout(() => document.getElementById('make').click(), arguments[0] - Date.now())", start
                )
            seen = []
            for tab in (first, second):
                driver.switch_to.window(tab)
                seen.append(b.shown_report(driver))
            assert seen[0] == seen[1]
            assert b.stored(driver).count(seen[0].decode()) == 1
    finally:
        driver.switch_to.window(second)
        driver.close()
        driver.switch_to.window(first)


def test_fresh_noise_is_on_purpose_and_limited(driver, file, folder):
    name = "limited"
    made = b.report_of(driver, TEXT, name)
    b.downloaded(driver, folder)
    b.opened(driver, file)
    b.chosen(driver, 1)
    assert b.report_of(driver, TEXT, name) is None
    assert "already released in this study" in b.said(driver)
    b.chosen(driver, 0)
    assert b.report_of(driver, TEXT, name) == made
    assert not b.at(driver, "anew").is_enabled()
    b.press(driver, "sure")
    b.press(driver, "anew")
    b.until(driver, lambda: "Set a limit below" in b.said(driver))
    assert b.at(driver, "limits").get_property("open")
    limited(driver, "2", "10")
    assert "epsilon 2 at N = 10" in b.at(driver, "limit-now").text
    b.press(driver, "anew")
    b.until(driver, lambda: "adds up to epsilon 2 at N = 10" in b.at(driver, "made").text)
    fresh = b.shown_report(driver)
    assert fresh != made
    assert report.decode(fresh, STUDY, "fresh").participant == report.decode(made, STUDY, "made").participant
    (folder / "down" / f"report-{report.decode(made, STUDY, 'made').participant[:8]}.json").unlink()
    assert b.downloaded(driver, folder) == fresh
    b.opened(driver, file)
    assert b.report_of(driver, TEXT, name) == fresh
    b.press(driver, "sure")
    b.press(driver, "anew")
    b.until(driver, lambda: "to epsilon 3 at N = 10; so far they are at 2, and your limit is 2" in b.said(driver))
    assert b.stored(driver).count(fresh.decode()) == 1


def limited(driver, epsilon, precision):
    b.entered(driver, "limit-epsilon", epsilon)
    b.entered(driver, "limit-precision", precision)
    b.press(driver, "limit")
    b.until(driver, lambda: b.at(driver, "limit-now").text.startswith("All"))


def test_the_policy_blocks_what_is_injected(driver):
    driver.execute_script("""
      window.blocked = [];
      document.addEventListener("securitypolicyviolation", (event) => window.blocked.push(event.effectiveDirective));
      const image = document.createElement("img");
      image.src = "https://example.org/" + encodeURIComponent(document.getElementById("record").value);
      document.body.append(image);
      const style = document.createElement("style");
      style.append("body { display: none }");
      document.body.append(style);
      fetch("https://example.org/").catch(() => {});
    """)
    b.evaluated(
        driver,
        """(() => { const script = document.createElement("script");
        try { script.text = "window.injected = true"; document.body.append(script); } catch (error) {
          window.blocked.push("trusted types: " + error.name); } })()""",
    )
    b.until(driver, lambda: len(driver.execute_script("return window.blocked")) >= 4)
    blocked = driver.execute_script("return window.blocked")
    for directive in ("img-src", "style-src-elem", "connect-src"):
        assert directive in blocked
    assert any("script" in one or "trusted" in one for one in blocked)
    assert driver.execute_script("return window.injected === undefined")
    assert not any("example.org" in url for url in b.requests(driver))
    driver.get_log("browser")


def test_nothing_of_the_script_can_be_reached(driver):
    names = ("Sampler", "entropy", "Ledger", "DATA", "privatized", "sha256", "Words", "counts", "say")
    for name in names:
        assert b.evaluated(driver, f"typeof {name}") == "undefined"


COUNTING = """
  window.asked = { chance: 0, bytes: 0 };
  const chance = Math.random, values = crypto.getRandomValues.bind(crypto);
  Math.random = () => { window.asked.chance++; return chance(); };
  Crypto.prototype.getRandomValues = function (bytes) { window.asked.bytes += bytes.byteLength; return values(bytes); };
"""


def test_every_bit_of_noise_is_from_the_system(tmp_path):
    good, bad = tmp_path / "good.html", tmp_path / "bad.html"
    good.write_text(page(STUDY), encoding="utf-8")
    wrong = good.read_text().replace(
        "crypto.getRandomValues(bytes.subarray(start, start + 65536))",
        "bytes.subarray(start, start + 65536).forEach((_, i, some) => { some[i] = 256 * Math.random(); })",
    )
    bad.write_text(wrong.replace("Content-Security-Policy", "x-none"), encoding="utf-8")
    asked = []
    with b.browser(tmp_path) as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTING})
        for path in (good, bad):
            b.opened(driver, path)
            before = b.evaluated(driver, "window.asked")
            b.report_of(driver, TEXT, path.name)
            after = b.evaluated(driver, "window.asked")
            asked.append({key: after[key] - before[key] for key in after})
    assert asked[0] == {"chance": 0, "bytes": 8 * len(WORDS)}
    assert asked[1]["chance"] == 8 * len(WORDS)


def test_every_step_by_keyboard(driver, folder):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def tab_to(name):
        for _ in range(80):
            ActionChains(driver).send_keys(Keys.TAB).perform()
            if driver.switch_to.active_element.get_attribute("id") == name:
                return driver.switch_to.active_element
        raise AssertionError(f"no way to {name} by keyboard")

    driver.execute_script("document.body.focus()")
    ActionChains(driver).send_keys(Keys.TAB).perform()
    assert driver.switch_to.active_element.text == "Skip to content"
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    assert driver.switch_to.active_element.get_attribute("id") == "main"
    b.entered(driver, "name", "keys")
    b.at(driver, "form-text").click()
    tab_to("record").send_keys("party party")
    tab_to("count").send_keys(Keys.ENTER)
    b.until(driver, lambda: b.at(driver, "counted").text)
    assert driver.switch_to.active_element.get_attribute("id") == "counted"
    tab_to("party").send_keys(Keys.SPACE)
    assert '"surprise party" five times' in b.at(driver, "example").text
    driver.execute_script("document.getElementById('limits').open = true")
    tab_to("limit").send_keys(Keys.ENTER)
    b.until(driver, lambda: "Enter two positive" in b.said(driver))
    assert driver.switch_to.active_element.get_attribute("id") == "limit"
    tab_to("make").send_keys(Keys.ENTER)
    b.until(driver, lambda: driver.find_elements("id", "download"))
    assert driver.switch_to.active_element.get_attribute("id") == "made"
    tab_to("bytes").send_keys(Keys.ENTER)
    assert b.at(driver, "report").is_displayed()
    tab_to("download").send_keys(Keys.ENTER)
    b.until(driver, lambda: "was saved as" in b.done(driver))
    assert driver.switch_to.active_element.get_attribute("id") == "end"


@pytest.mark.parametrize("name", ["party", "make", "limit"])
def test_a_button_keeps_the_keyboard_once_it_was_pressed(driver, name):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    driver.execute_script("document.getElementById('limits').open = true")
    driver.execute_script("document.getElementById(arguments[0]).focus()", name)
    for _ in range(2):
        ActionChains(driver).send_keys(Keys.ENTER).perform()
        driver.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
        assert driver.switch_to.active_element.get_attribute("id") == name
    assert not b.at(driver, "example").is_displayed()


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_nothing_serious_for_a_screen_reader_and_nothing_cut_off(file, tmp_path, width, dark):
    source = next(iter(axe_core_python.__path__)) + "/axe.min.js"
    with b.browser(tmp_path, width, dark) as driver:
        b.opened(driver, file)
        b.report_of(driver, TEXT)
        b.downloaded(driver, tmp_path)
        looked_at(driver, source, f"done-{width}-{'dark' if dark else 'light'}", width)
        b.opened(driver, file)
        looked_at(driver, source, f"page-{width}-{'dark' if dark else 'light'}", width)
        b.report_of(driver, TEXT)
        b.until(driver, lambda: driver.find_elements("id", "anew"))
        driver.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
        looked_at(driver, source, f"open-{width}-{'dark' if dark else 'light'}", width)


def looked_at(driver, source, name, width):
    """Nothing wider than the window, and nothing serious that axe finds; a picture if a folder for them is named."""
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    if folder := os.environ.get("COUNTVEIL_PICTURES"):
        b.picture(driver, f"{folder}/{name}.png")
    with open(source, encoding="utf-8") as code:
        b.evaluated(driver, code.read() + "; 0")
    violations = json.loads(b.evaluated(driver, "axe.run().then((found) => JSON.stringify(found.violations))"))
    assert not [(v["id"], v["nodes"][0]["html"][:200]) for v in violations if v["impact"] in ("serious", "critical")]


HEIGHT = 2000
"""The most pixels that the page may be high on a phone, before anything is entered."""


def test_the_page_is_short_on_a_phone(tmp_path):
    path = tmp_path / "sent.html"
    path.write_text(page(planned("Offices", address="https://study.example.org/reports")), encoding="utf-8")
    with b.browser(tmp_path, 390) as driver:
        b.opened(driver, path)
        assert driver.execute_script("return document.documentElement.scrollHeight") <= HEIGHT
        for key in ("state_level", "state_again"):
            assert wording.BOTH[key] in driver.find_element("tag name", "main").text


def test_counts_filled_in_one_by_one_and_as_rows(tmp_path):
    axes = [("receiver", ["Ann", "Bob, jr"]), ("day", ["Mon", "Tue", "Wed"])]
    quiet = [PrivacyLevel(1000, 1)]
    made = study.new("Mail", "To learn.", "a@b.org", quiet, axes, kind=study.CATEGORIES, truncated=False)
    path = tmp_path / "cells.html"
    path.write_text(page(made), encoding="utf-8")
    with b.browser(tmp_path) as driver:
        b.opened(driver, path)
        assert not b.at(driver, "form-text").is_displayed()
        inputs = driver.find_elements("css selector", "#cells input")
        assert [field.get_attribute("aria-label") for field in inputs][3] == "Bob, jr / Mon"
        for place, field in enumerate(inputs):
            field.clear()
            field.send_keys(str(place * 2**60))
        b.press(driver, "count")
        b.until(driver, lambda: "whole number from 0 to 2^62" in b.said(driver))
        inputs[5].clear()
        inputs[5].send_keys("5")
        b.press(driver, "count")
        b.until(driver, lambda: b.at(driver, "counted").text)
        b.press(driver, "make")
        values = report.decode(b.shown_report(driver), made, "cells").values
        assert values == [0, 2**60, 2**61, 3 * 2**60, 2**62, 5]
        b.press(driver, "form-counts")
        found = b.report_of(driver, 'receiver,day,count\n"Bob, jr",Tue,7\nAnn,Mon,2\nAnn,Sun,9', "rows")
        assert report.decode(found, made, "rows").values == [2, 0, 0, 0, 7, 0]


def test_counts_from_files(tmp_path):
    quiet = planned("Files", levels=[PrivacyLevel(1000, 1)])
    page_file = tmp_path / "files.html"
    page_file.write_text(page(quiet), encoding="utf-8")
    files = {
        "a.json": f'{{"party": {2**53 + 1}, "cake": 2, "other": 9}}',
        "b.CSV": "word,count\nparty,3\ncake,2\nother,9\n",
        "c.txt": "cake party, cake",
        "d.json": '{"party": 1.5}',
        "e.json": '{"party": 1',
    }
    with b.browser(tmp_path) as driver:
        b.opened(driver, page_file)
        seen = {}
        for name, content in files.items():
            (tmp_path / name).write_text(content)
            b.press(driver, "form-text")
            b.at(driver, "file").send_keys(str(tmp_path / name))
            b.until(driver, lambda content=content: b.at(driver, "record").get_property("value") == content)
            told = b.said(driver)
            assert (f"{name} was read as counts" in told) == (name != "c.txt")
            b.entered(driver, "name", name)
            b.press(driver, "count")
            b.until(driver, lambda told=told: b.at(driver, "counted").text or b.said(driver) != told)
            if b.at(driver, "counted").text:
                b.press(driver, "make")
                values = report.decode(b.shown_report(driver), quiet, name).values
                seen[name] = dict(zip(WORDS, values, strict=True))
            else:
                seen[name] = b.said(driver)
    quiet_words = dict.fromkeys(WORDS, 0)
    assert seen["a.json"] == quiet_words | {"party": 2**53 + 1, "cake": 2}
    assert seen["b.CSV"] == quiet_words | {"party": 3, "cake": 2}
    assert seen["c.txt"] == quiet_words | {"party": 1, "cake": 2}
    assert seen["d.json"] == "party: must be a whole number from 0 to 2^62."
    assert "read as JSON, and this is not valid JSON" in seen["e.json"]


def test_a_file_that_was_mended_is_read_when_it_is_opened_again(driver, tmp_path):
    path = tmp_path / "mine.txt"
    for content in ("party", "party cake"):
        path.write_text(content)
        driver.execute_script("document.getElementById('file').dispatchEvent(new Event('click'))")
        b.at(driver, "file").send_keys(str(path))
        b.until(driver, lambda content=content: b.at(driver, "record").get_property("value") == content)
        assert b.at(driver, "file").get_property("value").endswith("mine.txt")


def test_a_page_of_ten_thousand_words_is_small_enough(folder, shared):
    words = [f"wörd{n:05}" if n % 9 == 0 else f"word{n:05}" for n in range(10_000)]
    made = planned("Large", words)
    path = folder / "large.html"
    path.write_text(page(made), encoding="utf-8")
    assert path.stat().st_size < 300_000
    b.opened(shared, path)
    found = report.decode(b.report_of(shared, "word00001 WÖRD00009 " * 50, "large"), made, "large")
    assert len(found.values) == 10_000
