"""What a person hands over and what the page says of it, in Chromium: warnings, names, sending, and the end."""

import itertools
import json
from fractions import Fraction
from pathlib import Path

import pytest

from countveil.privacy import PrivacyLevel, promise, wording
from countveil.privacy.__main__ import _added_up
from countveil.privacy.exact import short
from countveil.study.page import page, strings
from countveil.study.receive import store
from tests.study.page import browser as b
from tests.study.page.offices import LEVELS, TEXT, planned
from tests.study.page.scripts import HERE, TWINS, node
from tests.study.receive.running import Running, free_port

pytestmark = pytest.mark.long

FILES = json.loads((Path(__file__).parent / "cases" / "files.json").read_text())


def test_a_page_that_is_done_has_nothing_to_press(driver, file, folder):
    made = b.report_of(driver, TEXT, "finished")
    assert not b.at(driver, "report").is_displayed()
    b.press(driver, "bytes")
    assert b.at(driver, "report").is_displayed()
    assert b.downloaded(driver, folder) == made
    assert b.at(driver, "end").find_element("tag name", "h2").text == "Done"
    assert "Send this file, and nothing else, to a@b.org" in b.done(driver)
    assert driver.execute_script(b.LIVE) == []
    assert b.at(driver, "record").get_property("value") == ""
    b.press(driver, "bytes")
    assert b.shown_report(driver) == made
    before = set((folder / "down").iterdir())
    b.opened(driver, file)
    driver.back()
    driver.forward()
    b.until(driver, lambda: b.at(driver, "ledger").get_property("textContent"))
    assert set((folder / "down").iterdir()) == before
    assert {"count", "make"} <= set(driver.execute_script(b.LIVE))
    assert "download" not in driver.execute_script(b.LIVE)


@pytest.mark.parametrize("text", ["", " \n", "nothing of it"])
def test_a_record_without_a_word_of_the_study_warns_before_anything_is_made(driver, text):
    before = b.stored(driver)
    b.entered(driver, "record", text)
    b.press(driver, "count")
    b.until(driver, lambda: "all 12 counts are zero" in b.at(driver, "counted").text)
    assert b.stored(driver) == before
    b.entered(driver, "record", "party")
    b.press(driver, "count")
    b.until(driver, lambda: "Found 1 of" in b.at(driver, "counted").text)
    assert "zero. Are these" not in b.at(driver, "counted").text


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_plain_text_gets_the_remedy(driver, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(bytes.fromhex(FILES[name]["bytes"]))
    b.at(driver, "file").send_keys(str(path))
    b.until(driver, lambda: b.said(driver) or b.at(driver, "record").get_property("value"))
    said = FILES[name]["said"]
    assert b.said(driver) == ("" if said is None else wording.BOTH[said])


def test_levels_read_as_sentences_first(driver):
    shown = [label.text for label in driver.find_elements("css selector", "#levels label")]
    assert shown == [promise.sentence(level.epsilon, level.precision, "word") for level in LEVELS]


def test_names_that_look_alike_are_one_record(driver):
    made = b.report_of(driver, TEXT, "Zo\u00eb's  diary")
    assert b.report_of(driver, "party", " zoe\u0308's DIARY\u200b") == made


def test_a_record_of_an_older_ledger_is_found_as_it_was_spelt(driver):
    """Ledgers used to keep names as they were typed; noise must not be drawn again for them."""
    made = b.report_of(driver, TEXT, "lower")
    b.evaluated(driver, RENAME)
    assert b.report_of(driver, TEXT, "Upper Case") == made
    assert b.report_of(driver, TEXT, "upper case") != made


RENAME = """new Promise((resolve, reject) => {
  const request = indexedDB.open("countveil-ledger", 1);
  request.onsuccess = async () => {
    const turn = request.result.transaction(["settings", "releases"], "readwrite"), answer = (asked) =>
      new Promise((done) => { asked.onsuccess = () => done(asked.result); });
    const secret = await answer(turn.objectStore("settings").get("secret"));
    const entry = (await answer(turn.objectStore("releases").getAll())).at(-1);
    const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const sum = new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode("record\0Upper Case")));
    entry.record = Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("");
    await answer(request.result.transaction("releases", "readwrite").objectStore("releases").put(entry));
    request.result.close();
    resolve(entry.record);
  };
})"""


def test_a_report_is_sent_to_the_study_once_it_was_seen(tmp_path):
    address = f"http://127.0.0.1:{free_port()}/here/reports"
    made = planned("Sent", address=address)
    path = tmp_path / "sent.html"
    path.write_text(page(made), encoding="utf-8")
    with b.browser(tmp_path) as driver:
        b.opened(driver, path)
        shown = b.report_of(driver, TEXT)
        assert not b.at(driver, "send").is_enabled()
        b.press(driver, "seen")
        assert b.requests(driver) == [path.as_uri()]
        left = "return document.querySelector('#ledger td:last-child').textContent"
        assert driver.execute_script(left) == "no"
        b.press(driver, "send")
        b.until(driver, lambda: "could not be reached" in b.said(driver))
        b.until(driver, lambda: driver.execute_script(left) != "no")  # nobody knows whether it arrived
        with Running(tmp_path, made):
            driver.execute_script("for (const _ of [1, 2]) document.getElementById('send').click()")
            b.until(driver, lambda: "accepted" in b.done(driver))
            assert driver.execute_script(b.LIVE) == []
            assert b.requests(driver) == [address] * 2
            b.opened(driver, path)
            assert b.report_of(driver, TEXT) == shown
            assert "There is nothing left to send" in b.at(driver, "made").text
            assert not driver.find_elements("id", "send")
            assert b.requests(driver) == [path.as_uri()]
    assert [content for _, content in store.contents(tmp_path / "reports.sqlite")] == [shown]


EVERY = [PrivacyLevel(1, 10), PrivacyLevel("2.5", 4), PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp(3)]
SAY = """const say = (key, values = {}) =>
  given.strings[key].replace(/\\{([a-z]+)\\}/g, (whole, place) => String(values[place] ?? whole));"""


def told(level):
    numbers = {name: str(number) for name, number in level.numbers().items()}
    return numbers | ({"shortPrecision": short(level.precision)} if isinstance(level, PrivacyLevel) else {})


def test_what_left_adds_up_in_the_words_of_the_command():
    sums = [(some, some[-1]) for n in (1, 2, 3) for some in itertools.product(EVERY, repeat=n)]
    code = "return given.sums.map(([levels, asked]) => inAll(levels, asked));"
    given = {"sums": [[[*map(told, levels)], told(asked)] for levels, asked in sums], "strings": strings()}
    parts = "".join((HERE / name).read_text() for name in ("ledger.js", "handing.js"))
    found = node(code, given, TWINS + parts + SAY)
    for said, (levels, asked) in zip(found, sums, strict=True):
        kind, number, rest = split(said)
        assert (kind, pytest.approx(number, rel=1e-5), rest) == split(_added_up([*levels], asked))


def split(said):
    """A sum in words: its number, which page and command write short in ways of their own, and the words around it."""
    kind, number, rest = said.split(" ", 2)
    return kind, float(Fraction(number)), rest
