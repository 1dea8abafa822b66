"""A headless Chromium for the tests of the page, with its own empty profile."""

import base64
import json
import os
import shutil
import signal
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait
from urllib3.exceptions import HTTPError

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WAIT = 60


@contextmanager
def browser(folder, width=1400, dark=False, flags=()):
    """A driver; what it downloads is in ``folder``/down. Skips where there is no Chromium."""
    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver to open the page")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    (folder / "down").mkdir(exist_ok=True)
    opened = webdriver.Chrome(options=options, service=Service(driver))
    try:
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600}
        # The browser's own first page may still be on its way, and then fails the first command.
        ready = WebDriverWait(opened, WAIT, ignored_exceptions=[WebDriverException])
        ready.until(lambda each: each.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size) is not None)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        where = {"behavior": "allow", "downloadPath": str(folder / "down")}
        opened.execute_cdp_cmd("Browser.setDownloadBehavior", where)
        opened.get("about:blank")  # ends the browser's own first page, and forgets what that asked for
        opened.get_log("performance")
        yield opened
    finally:
        with suppress(WebDriverException, HTTPError):  # what was killed cannot be asked to end
            opened.quit()


def kill(driver):
    """Kills the browser of this driver at once, as a power cut would."""
    service = driver.service.process.pid
    for child in Path(f"/proc/{service}/task/{service}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)


def at(driver, name):
    return driver.find_element("id", name)


def until(driver, condition):
    return WebDriverWait(driver, WAIT, poll_frequency=0.02).until(lambda _: condition())


def opened(driver, page):
    """Opens the page, and waits until it has read its ledger."""
    driver.get(page.as_uri())
    until(driver, lambda: at(driver, "ledger").get_property("textContent"))


def press(driver, name):
    """Clicks a button, wherever it is scrolled to."""
    driver.execute_script("document.getElementById(arguments[0]).click()", name)


def entered(driver, name, text):
    """Puts text into a field as a paste would."""
    driver.execute_script(
        "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
        "field.dispatchEvent(new Event('input', { bubbles: true }));"
        "field.dispatchEvent(new Event('change', { bubbles: true }));",
        name,
        text,
    )


def chosen(driver, place):
    level = driver.find_elements("css selector", "input[name=level]")[place]
    driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", level)
    level.click()


def done(driver):
    """What the page says at its end, or nothing before."""
    return at(driver, "end-said").text


def said(driver):
    return at(driver, "said").text


def report_of(driver, text, name="me"):
    """The report that the page makes of a text, byte for byte as shown, or None with what it says instead."""
    entered(driver, "name", name)
    entered(driver, "record", text)
    press(driver, "count")
    until(driver, lambda: at(driver, "counted").text)
    press(driver, "make")
    return shown_report(driver)


def shown_report(driver):
    until(driver, lambda: driver.find_elements("id", "report") or said(driver))
    found = driver.find_elements("id", "report")
    return found[0].get_property("textContent").encode() if found else None


def downloaded(driver, folder):
    """Downloads the report, and returns its bytes."""
    before = set((folder / "down").glob("*.json"))
    press(driver, "download")
    until(driver, lambda: done(driver))

    def arrived():
        return [p for p in set((folder / "down").glob("*.json")) - before if p.stat().st_size]

    (path,) = until(driver, arrived)
    return path.read_bytes()


def evaluated(driver, code):
    """The value of an expression in the page, in a world that its content-security policy does not bind."""
    told = {"expression": code, "returnByValue": True, "awaitPromise": True}
    answer = driver.execute_cdp_cmd("Runtime.evaluate", told)
    assert "exceptionDetails" not in answer, json.dumps(answer)[:2000]
    return answer["result"].get("value")


def stored(driver):
    """The reports in the ledger, read beside the page."""
    return evaluated(
        driver,
        """new Promise((resolve, reject) => {
          const request = indexedDB.open("countveil-ledger", 1);
          request.onerror = reject;
          request.onsuccess = () => {
            const all = request.result.transaction("releases").objectStore("releases").getAll();
            all.onsuccess = () => { request.result.close(); resolve(all.result.map((entry) => entry.report)); };
          };
        })""",
    )


def requests(driver):
    """The addresses that were asked for since the last time, but for those that the page's policy held back."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent, blocked = {}, set()
    for message in messages:
        told = message["params"]
        if message["method"] == "Network.requestWillBeSent":
            sent[told["requestId"]] = told["request"]["url"]
        elif message["method"] == "Network.loadingFailed" and told.get("blockedReason") == "csp":
            blocked.add(told["requestId"])
    return [url for request, url in sent.items() if request not in blocked]


def picture(driver, path):
    """A picture of the whole page."""
    told = {"captureBeyondViewport": True, "format": "png"}
    Path(path).write_bytes(base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", told)["data"]))


LIVE = """return [...document.querySelectorAll("button, input, textarea, select, a:not(.skip)")]
  .filter((each) => each.checkVisibility()).map((each) => each.id);"""
"""The ids of everything on the page that can be pressed or filled in."""
