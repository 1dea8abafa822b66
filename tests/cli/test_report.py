"""``countveil report``: what the page holds is tested in tests/report."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from tests import hostile
from tests.commands import fails, run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a release and its fit."""
    folder = tmp_path_factory.mktemp("made")
    counts = pd.DataFrame(np.random.default_rng(1).poisson(2.0, (8, 5)), columns=list("abcde"))
    release = cv.privatize(counts, cv.PrivacyLevel(1, 1))
    release.save(folder / "survey.npz")
    cv.TopicModel(2, draws=8, tune=8, chains=1, seed=1, threads=1).fit(release).save(folder / "fit.nc")
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    copy = shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(copy)
    return copy


def test_a_page_is_written_with_and_without_the_release(here):
    said = run(
        "report", "fit.nc", "-o", "fit.html", "--release", "survey.npz", "--title", "My <b>survey", "--members", "3"
    ).stdout
    page = (here / "fit.html").read_text(encoding="utf-8")
    assert "Wrote fit.html: " in said
    assert cv.TopicModel.load("fit.nc").diagnostics().verdict in said.replace("\n", " ")
    assert "<h1>My &lt;b&gt;survey</h1>" in page
    assert page.count('class="bars"') == 2
    assert page.count('<bdi class="name">') == 6
    assert "Simulated releases" in page
    assert "exists already" in fails("report", "fit.nc", "-o", "fit.html")
    run("report", "fit.nc", "-o", "fit.html", "--force")
    assert "Not checked: this page was made without the release" in (here / "fit.html").read_text(encoding="utf-8")


def test_the_naive_way_is_shown_beside_it_if_asked(here):
    run("report", "fit.nc", "-o", "fit.html", "--release", "survey.npz", "--naive")
    assert "What if the noise were ignored?" in (here / "fit.html").read_text(encoding="utf-8")
    said = fails("report", "fit.nc", "-o", "other.html", "--naive")
    assert "--naive must come with --release, the release that was fitted, got none" in said


def test_a_release_with_labels_in_another_order_is_refused(here):
    release = cv.Release.load("survey.npz")
    counts = pd.DataFrame(np.asarray(release.reports).clip(0), columns=release.column_labels)
    cv.privatize(counts[list("edcba")], cv.PrivacyLevel(1, 1)).save("other.npz")
    said = fails("report", "fit.nc", "-o", "fit.html", "--release", "other.npz")
    assert "release must be the one that was fitted, got 'e' for 'a' at word 0" in said
    assert not (here / "fit.html").exists()


def test_what_cannot_be_reported_is_refused_in_one_line(here):
    assert "output must end in .html or .htm, got fit.pdf" in fails("report", "fit.nc", "-o", "fit.pdf")
    said = fails("report", "fit.nc", "-o", "a.html", "--forecast", "2")
    assert "forecast must be 0 for a TopicModel, which has no time steps, got 2" in said
    assert "no fit at none.nc" in fails("report", "none.nc", "-o", "a.html")
    assert "no release at none.npz" in fails("report", "fit.nc", "-o", "a.html", "--release", "none.npz")
    assert "is not a fit saved by countveil" in fails("report", "survey.npz", "-o", "a.html")
    cv.privatize(np.ones((2, 2), dtype=int), cv.PrivacyLevel(1, 1)).save("other.npz")
    said = fails("report", "fit.nc", "-o", "a.html", "--release", "other.npz")
    assert said.startswith("error: release must be the one that was fitted")
    assert not (here / "a.html").exists()


MEMORY = 200 << 20


# A process begins with the peak of the one that started it: a small one starts the one that runs the commands.
STARTER = """
import json, resource, subprocess, sys
done = subprocess.run([sys.executable, "-c", *sys.argv[1:]], capture_output=True, text=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(json.dumps([done.returncode, done.stdout, done.stderr, peak]))
"""
COMMANDS = """
import contextlib, io, json, sys
from countveil.cli.app import app
for path in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(["report", path, "-o", path.replace(".nc", ".html")])
        except SystemExit as end:
            status = end.code
    print(json.dumps([status, out.getvalue(), err.getvalue()]))
"""


GREEDY = (
    "external storage", "an external link", "149 GiB never written", "packed zeros", "one text many times",
    "a chunk of more", "nested groups",
)  # fmt: skip
"""What reaches for files of others, or for memory."""


def reported(paths):
    """[exit status, output, errors] of ``countveil report`` for each fit, and the peak memory of it all in bytes."""
    started = [sys.executable, "-c", STARTER, COMMANDS, *(str(path) for path in paths)]
    status, out, err, peak = json.loads(subprocess.check_output(started))
    assert status == 0, err
    return [json.loads(line) for line in out.splitlines()], peak


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is in kilobytes on Linux")
def test_hostile_fits_are_refused_in_one_line_and_little_memory(here, capsys):
    """And nothing of the reader's own file is shown. All the others: tests/common/test_fit_files.py."""
    victim = here / "victim"
    victim.write_text(hostile.VICTIM)
    counts = np.random.default_rng(1).poisson(1.0, (12, 9))
    release = cv.privatize(counts, cv.PrivacyLevel(1, 1), column_labels=[f"word{i}" for i in range(9)])
    cv.TopicModel(3, draws=10, tune=5, chains=2, seed=1, threads=1, progress=False).fit(release).save("valid.nc")
    changes = {name: hostile.changes(victim)[name] for name in GREEDY}
    paths = {
        name: hostile.changed(here / "valid.nc", here / f"hostile-{place}.nc", change)
        for place, (name, (change, _)) in enumerate(changes.items())
    }
    found, peak = reported(paths.values())
    for (name, path), (status, out, err) in zip(paths.items(), found, strict=True):
        assert status == 1, name
        assert out == "", name
        assert err.count("\n") == 1, err
        assert err.startswith(f"error: {path} is not a fit saved by countveil: it must "), err
        assert changes[name][1] in err, err
        assert len(err) < 500 + len(str(path))
        assert "secret" not in err, name
        assert not path.with_suffix(".html").exists(), name
    assert peak < MEMORY, peak
    with capsys.disabled():
        print(f"\n{len(found)} hostile fits refused, at most {peak >> 20} MB")
