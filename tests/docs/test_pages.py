"""The pages: their code blocks run, their links lead somewhere, the reference and the site are whole."""

import csv
import re
import socket
from importlib.util import module_from_spec, spec_from_file_location
from pydoc import locate
from urllib.parse import urlsplit

import matplotlib as mpl
import pandas as pd
import pytest

import countveil as cv
from countveil.common.parameters import described_options
from tests.joint import short_choices
from tests.pages import DIRECTIVES, DOCS, EVERYWHERE, INSTEAD, LANGUAGES, OTHERS, PAGES, ROOT, blocks_of, run_page
from tests.served import served

pytestmark = pytest.mark.long

WITH_CODE = [page for page in PAGES if blocks_of(page)]


def after_inputs(left, _):
    assert left["exact"].mode_shape == (2, 2, 2)
    assert left["noisy"].labels == (["kenya", "peru"], ["aid", "talk"])
    draws = left["fit"].posterior["posterior"]
    assert draws["action"].to_numpy().tolist() == ["aid", "talk"]


def after_scale_and_servers(left, _):
    assert left["same"]
    assert [path.name for path in left["paths"]] == [f"part-{i:06}.npz" for i in range(3)]
    assert left["files"].shape == (600, 200)


def after_models(left, _):
    assert left["fit"].posterior["posterior"]["actor"].to_numpy().tolist() == left["names"]
    assert left["tucker"].posterior["posterior"]["core"].shape[2:] == (2, 2, 2)


def after_reports(left, folder):
    assert left["release"].column_labels == tuple(left["words"])
    assert "Topic 1" in (folder / "survey.html").read_text(encoding="utf-8")
    assert (folder / "topics.png").read_bytes().startswith(b"\x89PNG")


def after_collecting(_, folder):
    assert (folder / "few.csv").read_text().count("accepted") == 1
    assert cv.Release.load(folder / "received.npz").shape == (2, 12)


def after_study(_, folder):
    assert cv.Release.load(folder / "release.npz").shape == (6, 12)
    assert "Topics behind private counts" in (folder / "fit.html").read_text(encoding="utf-8")


def after_from_r(_, folder):
    for table in ("topics_by_word", "documents", "topics", "totals", "diagnostics"):
        assert (folder / "tables" / f"{table}.csv").is_file()


def after_noisy_counts(left, _):
    hidden = left["published"].isna().to_numpy()
    for table in left["tables"].to_numpy():
        assert ((table[hidden] >= 1) & (table[hidden] <= 9)).all()
        assert (table[~hidden] == left["deaths"].to_numpy()[~hidden]).all()


def after_readme(_, folder):
    assert "Topics behind private counts" in (folder / "fit.html").read_text(encoding="utf-8")


def after_tutorial(left, folder):
    assert left["fit"].posterior["posterior"]["word"].to_numpy().tolist() == left["counts"].columns.tolist()
    assert left["naive"].rate().sum() > left["fit"].rate().sum()
    assert "What if the noise were ignored?" not in (folder / "stories.html").read_text(encoding="utf-8")
    assert "What if the noise were ignored?" in (folder / "compared.html").read_text(encoding="utf-8")


AFTER = {
    "README.md": after_readme,
    "tutorial.md": after_tutorial,
    "inputs.md": after_inputs,
    "scale-and-servers.md": after_scale_and_servers,
    "models.md": after_models,
    "reports.md": after_reports,
    "collecting.md": after_collecting,
    "study.md": after_study,
    "from-r.md": after_from_r,
    "noisy-counts.md": after_noisy_counts,
}


@pytest.fixture(scope="module")
def countveil(tmp_path_factory):
    """A script that runs commands in processes that have imported the library; none where sockets keep no messages."""
    if not hasattr(socket, "SOCK_SEQPACKET"):
        yield None
        return
    with served(tmp_path_factory.mktemp("served")) as script:
        yield script


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short chains under fresh noise
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_every_code_block_runs(page, tmp_path, monkeypatch, countveil):
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    short_choices(monkeypatch)  # "auto" tries up to a hundred components
    left = run_page(page, tmp_path, countveil if page.name != "README.md" else None)
    AFTER.get(page.name, lambda *_: None)(left, tmp_path)
    if "pyplot" in vars(mpl):
        mpl.pyplot.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_code_block_is_of_a_kind_that_is_not_run(page):
    assert {block.language for block in blocks_of(page)} <= LANGUAGES
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE)
    assert len(fences) == 2 * (len(blocks_of(page)) + len(re.findall(DIRECTIVES, text, re.MULTILINE)))


def test_what_is_not_run_as_written_is_on_its_page():
    texts = {page.name: "\n".join(block.text for block in blocks_of(page)) for page in PAGES}
    for name, pieces in INSTEAD.items():
        for piece in pieces:
            assert piece.written in texts[name], (name, piece.written)
            assert piece.why
    for piece in EVERYWHERE:
        assert any(piece.written in text for text in texts.values()), piece.written
    for name, tests in OTHERS.items():
        for path in tests.split(", "):
            assert name in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings_that_there_are(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            address = urlsplit(target)
            assert address.scheme == "https", target
            assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", address.netloc), target
            continue
        name, _, anchor = target.partition("#")
        found = page.parent / name if name else page
        assert found.is_file(), target
        if found.suffix != ".md":
            continue
        there = found.read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", there, re.MULTILINE)
        slugs = [re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings]
        assert not anchor or anchor in slugs + re.findall(r"^\(([\w-]+)\)=$", there, re.MULTILINE), target


def test_the_reference_names_everything_public_once():
    named = re.findall(r"^ +~(countveil\S+)$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(named) == len(set(named))
    things = [(path.rpartition(".")[2], locate(path)) for path in named]
    from countveil import distributions, plotting

    public = set(cv.__all__) - {"__version__", *cv._MODULES}
    mechanisms = {kind.__name__ for kind in cv.mechanisms.MECHANISMS.values()}
    for module, names in (
        (cv, public),
        (cv.mechanisms, mechanisms),
        (distributions, distributions.__all__),
        (plotting, plotting.__all__),
    ):
        for name in names:
            assert sum(known == name and thing is getattr(module, name) for known, thing in things) == 1, name


def test_the_site_lists_every_option_of_every_model():
    spec = spec_from_file_location("options_directive", DOCS / "options.py")
    directive = module_from_spec(spec)
    spec.loader.exec_module(directive)
    assert "```{options-of-models}" in (DOCS / "reference.md").read_text(encoding="utf-8")
    listed = "\n".join(directive.options())
    for model in (cv.TopicModel, cv.BlockModel, cv.TensorModel, cv.PoissonFactorization):
        for name, said in described_options(model).items():
            assert listed.count(f"- `{name}` {said}") == 1
    assert re.search(r"^- `draws` \(int \| None, default None\): .* has one\)\.$", listed, re.MULTILINE)


def test_every_page_is_in_the_site():
    listed = ["index"]
    for page in DOCS.glob("*.md"):
        for tree in re.findall(
            r"^:::\{toctree\}\n(.*?)^:::$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            listed += re.findall(r"^(?:.* <)?([\w-]+)>?$", tree, re.MULTILINE)  # gallery/index has a slash
    assert sorted(listed) == sorted(page.stem for page in DOCS.glob("*.md"))


def test_the_readme_leads_to_the_lists_and_they_to_every_page():
    lists = {"start", "guide", "background", "reference", "evidence"}
    readme = set(re.findall(r"\]\(docs/([\w-]+)\.md\)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert lists <= readme
    listed = set()
    for page in lists:
        listed |= set(re.findall(r"\]\(([\w-]+)\.md", (DOCS / f"{page}.md").read_text(encoding="utf-8")))
    assert {page.stem for page in DOCS.glob("*.md")} <= listed | lists | {"index"}


def test_pages_are_short():
    """Nobody finishes a page of a thousand lines; measurements belong into benchmarks/results."""
    lengths = {page.stem: len(page.read_text(encoding="utf-8").splitlines()) for page in DOCS.glob("*.md")}
    assert lengths.pop("mathematics") < 1000
    assert {name: n for name, n in lengths.items() if n > 400} == {}


def test_every_table_of_results_has_its_source_in_the_first_line():
    paths = sorted((ROOT / "benchmarks" / "results").glob("*.csv"))
    assert len(paths) > 90
    for path in paths:
        first, second = path.read_text(encoding="utf-8").splitlines()[:2]
        assert re.match(r"# .{20,}", first), path.name
        assert pd.read_csv(path, skiprows=1).shape[1] == len(next(csv.reader([second]))), path.name


@pytest.mark.parametrize("example", sorted((DOCS / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_of_the_gallery_begin_with_a_title(example):
    text = example.read_text(encoding="utf-8")
    assert re.match(r'"""\n[A-Z].*\n=+\n\n.+\n"""\n', text)
    assert "# %%\n" in text


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_headings_are_anchors_that_the_site_s_script_can_follow(page):
    """One that begins with a digit is no CSS selector, and stops the script of the theme."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not re.findall(r"^#+ \d.*$", text, re.MULTILINE)
