"""``countveil collect``: what becomes of a report is tested in tests/study/test_collect.py."""

import json

import pytest

import countveil as cv
from countveil.cli.collect import counted
from countveil.privacy import PrivacyLevel, report, study
from countveil.privacy.__main__ import main as take_part
from countveil.study.receive.store import Store
from tests.commands import SHORT, fails, run

LEVEL = PrivacyLevel(1, 10)
STUDY = study.new("Mail", "To learn.", "a@b.org", [LEVEL], [("word", ["party", "surprise", "cake"])])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a study and a folder for reports in it."""
    (tmp_path / "reports").mkdir()
    (tmp_path / "study.json").write_text(STUDY.to_json())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(number):
    return report.encode(report.Report(f"{number:032x}", LEVEL, [1, 0, 7]), STUDY)


def test_a_folder_of_reports(here):
    for i in range(5):
        (here / "reports" / f"{i}.json").write_bytes(made(i))
    (here / "reports" / "5.json").write_bytes(b"{}")
    said = run("collect", "study.json", "reports", "-o", "r.npz").stdout
    assert said.splitlines() == [
        "Accepted 5 of 6 reports.",
        "Refused for format: 1",
        "Wrote r.npz, and r.csv with what became of every file.",
    ]
    assert cv.Release.load("r.npz").levels == LEVEL
    assert "r.npz exists already" in fails("collect", "study.json", "reports", "-o", "r.npz")
    assert "must be a different file from" in fails(
        "collect", "study.json", "reports/0.json", "-o", "reports/0.json", "--force"
    )
    assert "s.csv must be a different file from" in fails("collect", "study.json", "reports", "-o", "s.csv", "--force")
    before = (here / "reports" / "0.json").read_bytes()
    for inside in ("reports/0.json", "reports/new.npz"):
        assert "must be outside the directories of reports" in fails(
            "collect", "study.json", "reports", "-o", inside, "--force"
        )
    assert "output must end in .npz, got s.json" in fails(
        "collect", "study.json", "reports", "-o", "s.json", "--table", "t.csv"
    )
    assert not (here / "s.json").exists()
    assert "t.csv must be outside" in fails(
        "collect", "study.json", "reports", "-o", "s.npz", "--table", "reports/t.csv"
    )
    assert (here / "reports" / "0.json").read_bytes() == before
    assert "id must be" in fails("collect", changed(here), "reports", "-o", "s.npz")
    assert not (here / "s.npz").exists()


def changed(here):
    described = json.loads((here / "study.json").read_text())
    (here / "changed.json").write_text(json.dumps(described | {"contact": "eve"}))
    return "changed.json"


def test_a_study_file_among_the_reports_is_named(here):
    (here / "reports" / "0.json").write_bytes(made(0))
    (here / "reports" / "study.json").write_text(STUDY.to_json())
    (here / "reports" / "short.json").write_text(json.dumps(json.loads(STUDY.to_json()), sort_keys=True))
    (here / "reports" / "other.json").write_bytes(b'{"format":"countveil-other"}')
    (here / "reports" / "folder").mkdir()
    said = run("collect", "study.json", "reports", "study.json", "-o", "r.npz").stdout.splitlines()
    words = "it is the description of a study, not a report."
    assert said[:4] == [
        f"Skipped reports/short.json: {words}",
        f"Skipped reports/study.json: {words}",
        f"Skipped study.json: {words}",
        "Accepted 1 of 3 reports.",
    ]
    assert "study.json" not in (here / "r.csv").read_text()


def test_files_and_stores_together(here):
    (here / "one.json").write_bytes(made(1))
    kept = Store(here / "reports.sqlite", STUDY)
    for number in (1, 2, 3):
        kept.put(f"{number:032x}", made(number)).result(10)
    kept.close()
    said = run("collect", "study.json", "one.json", "reports.sqlite", "-o", "release.npz").stdout
    assert "Accepted 3 of 4 reports." in said
    assert "Refused for participant: 1" in said
    assert f"reports.sqlite#{1:032x},refused" in (here / "release.csv").read_text()


@pytest.mark.parametrize("total", [3, 2000])
def test_a_progress_bar_takes_nothing_away(total):
    assert list(counted(iter(range(total)), total)) == list(range(total))


@pytest.mark.long
def test_from_covariates_in_a_study_to_a_contrast(here):
    (here / "word.txt").write_text("tax\njobs\nschool\ntrain\n")
    asked = "--title", "T", "--purpose", "P", "--contact", "c@d", "--level", "1:10"
    stated = "--covariate", "party=R,D", "--covariate", "age=number:18:120"
    run("study", "new", "word.txt", "-o", "public.json", *asked, *stated)
    for i in range(12):
        (here / "me.txt").write_text("tax jobs " * 9 if i % 2 else "school train " * 9)
        own = "--covariate", f"party={'RD'[i % 2]}", "--covariate", f"age={30 + i}", "--ledger", f"ledger-{i}"
        output = f"reports/{i:02}.json"
        assert take_part(["report", "public.json", "me.txt", "--yes", "-o", output, *own]) == 0
    kept = (here / "reports" / "00.json").read_bytes()
    (here / "reports" / "99.json").write_bytes(kept.replace(b'"party":"R"', b'"party":"D"'))
    said = run("collect", "public.json", "reports", "-o", "r.npz").stdout
    assert "Refused for sha256: 1" in said
    release = cv.Release.load("r.npz")
    release.save("again.npz")
    assert (here / "again.npz").read_bytes() == (here / "r.npz").read_bytes()
    people = cv.covariates_of(release)
    taxes = release.reports.toarray()[:, 0] > 4
    assert (people["party"] == "D").tolist() == taxes.tolist()
    assert sorted(people["age"]) == list(range(30, 42))
    fit = "fit", "topics", "r.npz", "-o", "f.nc", *SHORT
    assert "Coefficients" in run(*fit, "--prevalence", "~ party + age").stdout
    found = cv.TopicModel.load("f.nc")
    assert set(found.effects.contrast({"party": "D"}, {"party": "R"})) >= {"topic", "estimate", "lower", "upper"}
    model = cv.TopicModel(2, prevalence="~ party", draws=2, tune=2, chains=1, seed=1, progress=False)
    same = model.fit(release).covariates_.frame
    assert same["party"].tolist() == people["party"].tolist()
    people.assign(party=list("DR" * 6)).to_csv("people.csv")
    run(*fit, "--prevalence", "~ party", "--covariates", "people.csv", "--force")
    assert cv.TopicModel.load("f.nc").covariates_.frame["party"].tolist() == list("DR" * 6)
    made = cv.Release(release.reports, release.mechanism, True, release.labels)
    made.save("bare.npz")
    bare = ["bare.npz" if part == "r.npz" else part for part in fit]
    said = fails(*bare, "--prevalence", "~ party", "--force")
    assert "--prevalence must come with --covariates, a table, if the release has no covariates" in said
