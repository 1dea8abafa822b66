"""The page in Chromium: nothing in the console, nothing wider than the screen, every picture there."""

import html
import json

import axe_core_python
import numpy as np
import pytest

import countveil as cv
from countveil.report import render
from tests import dates
from tests.effects import the_fit
from tests.report.conftest import LONG, QUICK
from tests.study.page import browser as b

pytestmark = pytest.mark.long

HEIGHTS = {1400: 2680, 390: 5100}
"""The most pixels that a page about topics is high, folded: half of what it once was."""
KINDS = ["topics", "blocks", "tensor", "many", "effects", "dates", "dynamic"]
FRAME = """<!DOCTYPE html><title>nothing</title>
<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const page = document.querySelector("iframe").contentDocument, root = page.documentElement;
  const height = root.scrollHeight;
  page.querySelectorAll("details").forEach(each => {{ each.open = true; }});
  const all = selector => [...page.querySelectorAll(selector)];
  const box = e => e.getBoundingClientRect();
  const beside = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1;
  const above = (a, b) => a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  const lines = all(".line").map(e => [...e.children].map(box));
  const cut = all("h1,h2,h3,h4,p,li,.card,figure,table.stack").filter(e => box(e).right > root.clientWidth + 1);
  document.title = JSON.stringify({{
    height, width: root.clientWidth, scroll: root.scrollWidth,
    cut: cut.map(e => e.tagName + e.textContent.slice(0, 30)),
    overlaps: lines.filter(([a, b]) => !beside(a, b) && !above(a, b)).length, lines: lines.length > 0,
    blank: all("img").filter(i => !i.naturalWidth).length,
    narrow: root.clientWidth < 600 ? all("caption").filter(e => 2 * box(e).width < root.clientWidth).length : 0,
  }});
}});
</script>"""


def pages(fits):
    counts = np.random.default_rng(7).poisson(1.0, (20, 60))
    data = cv.PrivatizedCounts(counts, 0.3, column_labels=[f"{LONG}{v}" for v in range(60)])
    many = cv.TopicModel(40, draws=2, tune=2, chains=2, seed=1, threads=1).fit(data)
    found = {name: render(*each, naive=name == "topics") for name, each in fits.items()}
    steps = [np.arange(20), [f"{LONG}{v}" for v in range(60)]]
    dynamic = cv.DynamicModel(4, **QUICK).fit(cv.PrivatizedCounts(counts, 0.3, labels=steps))
    found |= {"many": render(many), "effects": render(the_fit()), "dates": render(dates.the_fit())}
    return found | {"dynamic": render(dynamic, forecast=dynamic.forecast(2, draws=10))}


@pytest.fixture(scope="module")
def written(tmp_path_factory, topic_fit, release, block_fit, network, tensor_fit, events):
    folder = tmp_path_factory.mktemp("pages")
    fits = {"topics": (topic_fit, release), "blocks": (block_fit, network), "tensor": (tensor_fit, events)}
    for name, page in pages(fits).items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
        for width in (1400, 390):
            frame = FRAME.format(width=width, page=html.escape(page))
            (folder / f"{name}-{width}.html").write_text(frame, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A browser that is wider than the widest frame."""
    with b.browser(tmp_path_factory.mktemp("browser"), 1500, flags=["--hide-scrollbars"]) as opened:
        yield opened


def console(driver):
    """What was said since the last time."""
    return [entry["message"] for entry in driver.get_log("browser")]


@pytest.mark.parametrize("kind", KINDS)
def test_the_console_stays_empty(written, driver, kind):
    driver.get((written / f"{kind}.html").as_uri())
    assert console(driver) == []


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_overlaps_or_leaves_the_screen(written, driver, kind, width):
    driver.get((written / f"{kind}-{width}.html").as_uri())
    b.until(driver, lambda: driver.title != "nothing")
    found = json.loads(driver.title)
    height = found.pop("height")
    if kind == "topics":
        assert height <= HEIGHTS[width]
    assert found == {"width": width, "scroll": width, "cut": [], "overlaps": 0, "lines": True, "blank": 0, "narrow": 0}


def test_the_console_is_really_watched(written, driver, topic_fit):
    page = render(topic_fit).replace("</body>", "<script>console.error('seen')</script></body>")
    (written / "bad.html").write_text(page, encoding="utf-8")
    console(driver)
    driver.get((written / "bad.html").as_uri())
    assert "Content Security Policy" in " ".join(console(driver))


PIXELS = """(async () => {
  const image = document.querySelector("SELECTOR"), canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  [canvas.width, canvas.height, pen.filter] = [image.naturalWidth, image.naturalHeight, getComputedStyle(image).filter];
  await image.decode();
  pen.drawImage(image, 0, 0);
  const found = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  const most = found.reduce((reds, value, i) => (i % 4 ? reds : Math.max(reds, value)), 0);
  return JSON.stringify([found[0] + found[1] + found[2], most]);
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_pictures_are_light_on_dark_in_a_dark_page_and_heat_maps_keep_their_scale(written, tmp_path, dark):
    with b.browser(tmp_path, 1400, dark=dark) as driver:
        driver.get((written / "blocks.html").as_uri())
        paper = b.evaluated(driver, "getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(21, 24, 28)" if dark else "rgb(255, 255, 255)")
        corner, _ = json.loads(b.evaluated(driver, PIXELS.replace("SELECTOR", "img:not(.heat)")))
        assert (corner < 150) is dark
        corner, most = json.loads(b.evaluated(driver, PIXELS.replace("SELECTOR", "img.heat")))
        assert corner > 600
        assert most > 200


AXE = "axe.run().then((found) => JSON.stringify(found.violations.map((v) => [v.impact, v.id, v.nodes[0].html])))"


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_nothing_serious_for_a_screen_reader(written, tmp_path, width, dark):
    """Many topics are a longer page of the same, on which the rules take most of a minute."""
    kinds = [kind for kind in KINDS if kind != "many"]
    source = next(iter(axe_core_python.__path__)) + "/axe.min.js"
    sick = (written / "topics.html").read_text(encoding="utf-8").replace(' alt="', ' data-alt="')
    (written / "sick.html").write_text(sick, encoding="utf-8")
    found = {}
    with b.browser(tmp_path, width, dark=dark) as driver, open(source, encoding="utf-8") as code:
        axe = code.read()
        for page in [*kinds, "sick"]:
            driver.get((written / f"{page}.html").as_uri())
            b.evaluated(driver, axe + "; 0")
            b.evaluated(driver, "document.querySelectorAll('details').forEach((e) => { e.open = true; })")
            found[page] = json.loads(b.evaluated(driver, AXE))
        assert driver.get_log("browser") == []
    assert [rule for _, rule, _ in found.pop("sick")] == ["image-alt"]
    assert found == {page: [] for page in kinds}
