import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import countveil as cv
from countveil.privacy import wording
from tests.commands import COUNTS, SHORT, WORDS, fails, privatized, run


def test_privatize_then_fit_keeps_the_labels(here):
    said = privatized().stdout
    release = cv.Release.load("r.npz")
    assert said.startswith(cv.PrivacyLevel(1, 2).describe())
    assert "Wrote r.npz: 20 x 8 reports, signed." in said
    assert release.row_labels == tuple(f"doc{d}" for d in range(20))
    assert release.column_labels == tuple(WORDS)
    assert not release.simulated
    assert release.reports.min() < 0

    said = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "--chains", "1").stdout  # of several, some are left out
    fit = cv.TopicModel.load("f.nc")
    assert list(fit.feature_names_in_) == WORDS
    assert fit.posterior["posterior"].sizes["topic"] == 2
    assert "share" in said
    assert fit.top_words(1)["word"].iloc[0] in said
    assert fit.diagnostics().verdict.split()[0] in said
    assert "Wrote f.nc: seed 1," in said


@pytest.mark.parametrize(
    "rule", [("--epsilon", "1", "--precision", "2"), ("--mechanism", "random-rounding", "--base", "3")]
)
def test_privatize_keeps_the_name_of_the_rows(here, rule):
    Path("named.csv").write_text("county,flu,cold\nAda,4,7\nBo,9,2\n")
    said = run("privatize", "named.csv", "-o", "n.npz", *rule).stdout
    assert "2 labels of county and 2 column labels are published as they are" in said
    assert cv.Release.load("n.npz").extras.axis_names == ("county", None)
    if "--epsilon" in rule:
        run("privatize", "named.csv", "-o", "parts", "--rows-per-file", "1", *rule)
        assert cv.Release.load("parts/part-000001.npz").extras.axis_names == ("county", None)
    said = run("privatize", "named.csv", "-o", "n.npz", "--force", "--no-row-labels", *rule).stdout
    assert "county" not in said
    assert cv.Release.load("n.npz").extras.axis_names is None


def test_networks_keep_the_names_of_their_columns(here):
    Path("edges.csv").write_text("lender,borrower,loans\nAda,Bo,4\nBo,Cy,9\nCy,Ada,3\n")
    edges = ("edges.csv", "--network", "--directed", "--edge-columns", "lender,borrower,loans")
    run("privatize", *edges, "-o", "n.npz", "--epsilon", "1", "--precision", "2")
    assert cv.Release.load("n.npz").extras.axis_names == ("lender", "borrower")
    noise = ("--mechanism", "two-sided-geometric", "--alpha", "0.5", "--background", "0")
    run("import", *edges, "-o", "i.npz", *noise)
    assert cv.Release.load("i.npz").extras.axis_names == ("lender", "borrower")


@pytest.mark.long
def test_privatize_to_a_folder_of_files_then_fit_it(here):
    said = privatized("--rows-per-file", "6", "--truncated").stdout
    assert "20 row labels and 8 column labels are published as they are, without noise." in said
    assert "Wrote r.npz: 20 x 8 reports in 4 files, truncated at zero." in said
    assert [cv.Release.load(path).shape[0] for path in sorted(Path("r.npz").iterdir())] == [6, 6, 6, 2]
    assert "got an existing folder" in fails(
        "privatize", "counts.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "2", "--rows-per-file", "6"
    )
    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    fit = cv.TopicModel.load("f.nc")
    assert list(fit.feature_names_in_) == WORDS
    assert list(fit.posterior["posterior"]["doc"].to_numpy()) == [f"doc{d}" for d in range(20)]
    run("fit", "tensor", "r.npz", "-o", "t.nc", "--components", "2", "--shape", "20,4,2", *SHORT[2:])
    sizes = cv.TensorModel.load("t.nc").posterior["posterior"].sizes
    assert (sizes["mode0"], sizes["mode1"], sizes["mode2"]) == (20, 4, 2)
    assert "in memory" in fails("fit", "blocks", "r.npz", "-o", "b.nc")


def test_a_network_says_its_kind(here):
    (here / "counts.csv").write_text("who,ann,bob\nann,0,3\nbob,3,0\n")
    fit = ("fit", "blocks", "r.npz", "-o", "f.nc", "--communities", "2", *SHORT[2:], "--force")
    assert "Wrote r.npz: 2 x 2 reports, signed, of an undirected network." in privatized("--undirected").stdout
    assert cv.Release.load("r.npz").directed is False
    assert "set directed=False (on the command line, --undirected)" in fails(*fit)
    run(*fit, "--undirected")
    assert "of a directed network." in privatized("--directed", "--force").stdout
    assert cv.Release.load("r.npz").directed is True
    assert "leave --undirected out" in fails(*fit, "--undirected")
    asked = ("privatize", "counts.csv", "-o", "s.npz", "--epsilon", "1", "--precision", "2", "--undirected")
    assert "a network must be in one file" in fails(*asked, "--rows-per-file", "1")
    (here / "counts.csv").write_text("who,ann,bob\nann,0,3\nbob,2,0\n")
    assert "each pair once, above the diagonal" in fails(*asked)


def test_privatize_prints_no_count(here):
    """Every number it prints comes from the level and the shape."""
    (here / "counts.csv").write_text("a,b\n987,654\n321,987\n")
    said = privatized().output
    assert not re.search("987|654|321", said)


@pytest.mark.parametrize("start", ["", "someone,"])
def test_a_file_without_a_header_is_refused_and_nothing_of_it_is_written(here, start):
    (here / "counts.csv").write_text(f"{start}70007,70009\n{start}70021,70027\n")
    before = sorted(here.iterdir())
    arguments = ["privatize", "counts.csv", "-o", "r.npz", "--epsilon", 1, "--precision", 2]
    said = fails(*arguments)
    assert "counts.csv must have names, not numbers, in its header row" in said
    assert "--no-header" in said
    assert not re.search("700|someone", said)
    assert sorted(here.iterdir()) == before

    shown = run(*arguments, "--no-header", "--no-row-labels").output
    assert "2 columns of counts." in shown
    assert not re.search("700|someone", shown)
    release = cv.Release.load("r.npz")
    assert release.labels == (None, None)
    assert release.shape == (2, 2)
    with zipfile.ZipFile("r.npz") as archive:
        for name in archive.namelist():
            assert not re.search(b"7000|7002|someone", archive.read(name))


def test_row_labels_and_columns_are_told(here):
    said = privatized().stdout
    assert "8 columns of counts, from word0 to word7." in said
    assert "20 row labels and 8 column labels are published as they are, without noise." in said
    assert "doc1" not in said
    said = privatized("--no-row-labels", "--force").stdout
    assert "\n8 column labels are published" in said
    assert cv.Release.load("r.npz").row_labels is None
    (here / "counts.csv").write_text("id,a\n17,1\n18,2\n")
    said = privatized("--row-labels", "id", "--force").stdout
    assert "1 column of counts, from a to a." in said
    assert cv.Release.load("r.npz").row_labels == ("17", "18")
    assert cv.Release.load("r.npz").column_labels == ("a",)
    assert "must have one column 'name', got 0" in fails(
        "privatize", "counts.csv", "-o", "s.npz", "--epsilon", 1, "--precision", 1, "--row-labels", "name"
    )
    (here / "counts.csv").write_text("id;a\n17;1\n18;2\n")
    assert "got semicolons" in fails("privatize", "counts.csv", "-o", "s.npz", "--epsilon", 1, "--precision", 1)


@pytest.mark.parametrize(
    ("epsilon", "hidden"), [(3, None), ("3.3", "little"), (7, "little"), (8, "practically nothing")]
)
def test_a_weak_level_is_warned_of(here, epsilon, hidden):
    found = run("privatize", "counts.csv", "-o", "r.npz", "--epsilon", epsilon, "--precision", "2")
    if hidden is None:
        assert found.stderr == ""
    else:
        assert found.stderr.startswith(f"warning: epsilon {epsilon} at N = 2 hides {hidden}; ")
        assert len(found.stderr.splitlines()) == 1


def test_two_runs_differ_since_the_noise_is_real(here):
    privatized()
    first = cv.Release.load("r.npz").reports
    privatized("--force")
    assert not np.array_equal(first, cv.Release.load("r.npz").reports)


def test_decimals_stay_exact(here):
    run("privatize", "counts.csv", "-o", "r.npz", "--epsilon", "0.1", "--precision", "2.5")
    release = cv.Release.load("r.npz")
    assert (str(release.epsilon), str(release.precision)) == ("1/10", "5/2")


def test_truncated_on_request(here):
    assert "truncated at zero" in privatized("--truncated").stdout
    assert cv.Release.load("r.npz").reports.min() == 0


def test_vocabulary_names_the_columns(here):
    np.save("counts.npy", COUNTS)
    (here / "words.txt").write_text("\n".join(reversed(WORDS)))
    run("privatize", "counts.npy", "-o", "r.npz", "--epsilon", 1, "--precision", 1, "--vocabulary", "words.txt")
    assert cv.Release.load("r.npz").column_labels == tuple(reversed(WORDS))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--epsilon": "0"}, "epsilon must be positive, got 0"),
        ({"--epsilon": "much"}, "epsilon must be a decimal number, got 'much'"),
        ({"--precision": "-1"}, "precision must be positive, got -1"),
        ({"counts.csv": "other.csv"}, "no counts at other.csv"),
        ({"counts.csv": "bad.csv"}, r"counts must be non-negative whole numbers, got a negative value at index"),
        ({"counts.csv": "bad.xyz"}, "bad.xyz must end in one of"),
        ({"--vocabulary": "missing.txt"}, "no vocabulary at missing.txt"),
        ({"--vocabulary": "short.txt"}, "short.txt must name the 8 columns of .*counts.csv, got 1 words"),
        ({"-o": "nowhere/r.npz"}, "no directory nowhere to write r.npz in"),
    ],
)
def test_privatize_refuses_in_one_line(here, changed, message):
    (here / "bad.csv").write_text("a,b\n1,-2\n")
    (here / "bad.xyz").write_text("a,b\n1,2\n")
    (here / "short.txt").write_text("one\n")
    options = {"-o": "r.npz", "--epsilon": "1", "--precision": "2"}
    source = changed.pop("counts.csv", "counts.csv")
    options |= changed
    arguments = [part for option in options.items() for part in option]
    assert re.search(message, fails("privatize", source, *arguments))
    assert not (here / "r.npz").exists()


@pytest.mark.parametrize("kind", ["counts.csv", "counts.npz", "counts.npy"])
def test_counts_that_are_all_zero_warn_before_anything_is_made(here, kind):
    zeros = np.zeros((3, 2), dtype=int)
    if kind == "counts.csv":
        (here / kind).write_text("a,b\n0,0\n0,0\n")
    elif kind == "counts.npz":
        scipy.sparse.save_npz(kind, scipy.sparse.csr_array(zeros))
    else:
        np.save(kind, zeros)
    asked = ["privatize", kind, "-o", "r.npz", "--epsilon", "1", "--precision", "2"]
    assert run(*asked).stderr == f"warning: every count in {kind} is zero; is it the right file?\n"
    (here / "one.csv").write_text("a,b\n0,0\n0,1\n")
    assert run("privatize", "one.csv", "-o", "one.npz", *asked[4:]).stderr == ""


FILES = json.loads((Path(__file__).parents[1] / "study" / "page" / "cases" / "files.json").read_text())


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name]["said"] not in (None, "not_text")])
def test_documents_get_the_remedy(here, name):
    (here / name).write_bytes(bytes.fromhex(FILES[name]["bytes"]))
    said = fails("privatize", name, "-o", "r.npz", "--epsilon", "1", "--precision", "2")
    assert wording.BOTH[FILES[name]["said"]] in said


def test_a_table_in_another_encoding_gets_the_remedy(here):
    (here / "counts.csv").write_bytes(bytes.fromhex(FILES["latin-1.csv"]["bytes"]))
    said = fails("privatize", "counts.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "2")
    assert wording.BOTH["not_text"] in said


@pytest.mark.parametrize("values", [np.array([["a"]]), np.zeros((0, 2)), np.array([[np.nan]])])
def test_what_is_no_count_is_refused_before_it_is_looked_at(here, values):
    np.save("odd.npy", values)
    assert "counts must" in fails("privatize", "odd.npy", "-o", "r.npz", "--epsilon", "1", "--precision", "2")


def test_a_level_of_rho(here):
    made = ("privatize", "counts.csv", "-o", "r.npz")
    said = run(*made, "--rho", "0.125").stdout
    assert said.startswith(cv.PrivacyLevel.zcdp("0.125").describe())
    assert "Wrote r.npz: 20 x 8 reports, signed." in said
    assert cv.Release.load("r.npz").levels == cv.PrivacyLevel.zcdp("0.125")
    assert "rho 12 hides practically nothing; a smaller rho hides more" in run(*made, "--rho", "12", "--force").stderr
    assert "truncate must be False" in fails(*made, "--rho", "1", "--truncated", "--force")
    rule = "a level must be --epsilon and --precision, or --rho alone, got "
    assert rule + "--epsilon and --rho" in fails(*made, "--rho", "1", "--epsilon", "1", "--force")
    assert rule + "--epsilon" in fails(*made, "--epsilon", "1", "--force")
    assert "or --rho alone" in " ".join(run(*made, "--force", status=2).stderr.replace("│", " ").split())


def test_random_rounding_says_that_it_is_no_differential_privacy(here):
    rounding = ("privatize", "counts.csv", "-o", "r.npz", "--mechanism", "random-rounding", "--base", "3")
    found = run(*rounding)
    assert "random rounding is not differential privacy" in found.stderr
    assert "This is not differential privacy" in found.stdout
    assert "Wrote r.npz: 20 x 8 reports, randomly rounded." in found.stdout
    release = cv.Release.load("r.npz")
    assert release.mechanism == cv.mechanisms.RandomRounding(3)
    assert release.column_labels == tuple(WORDS)
    assert (abs(release.reports - COUNTS) < 3).all()
    assert "is not differential privacy" in " ".join(run("privatize", "--help").stdout.replace("│", " ").split())
    for options, rule in (
        (("--epsilon", "1", "--directed"), "without --epsilon and --directed or --undirected"),
        (("--signed",), "without --truncated or --signed"),
    ):
        assert rule in fails(*rounding, "--force", *options)
    assert "--mechanism must be random-rounding" in fails(
        *rounding[:4], "--force", "--mechanism", "laplace", "--base", "3"
    )
    assert "got none" in fails(*rounding[:4], "--force", "--base", "3")
    assert "--base must be a whole number of at least 2, such as --base 3, got none" in fails(*rounding[:6], "--force")
    assert "base" in fails(*rounding[:7], "1", "--force")
