"""The code blocks of the pages: what is in them, what a test runs in place of a line, and how they are run."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
FENCED = r"^```((?!\{).*)\n((?:.*\n)*?)```$"
DIRECTIVES = r"^```\{.*\n(?:.*\n)*?```$"
LANGUAGES = {"python", "sh", "", "text"}  # without a name it is Python; "text" is what something printed


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line of the page on which it begins."""

    language: str
    text: str
    line: int


class Instead(NamedTuple):
    """What a test runs in place of a piece of a page; nothing at all where ``run`` is empty."""

    written: str
    run: str
    why: str


ELSEWHERE = "longer than a test of a page should take; run, smaller, by tests of its own"
SMALL = "the page's own command samples longer than a test should"
INSTALLS = "installs, from a registry or by pip; `make demo`, `make docs` and `make test` are what does it"
OTHERS = {
    "bring-your-own.md": "tests/docs/test_bring_your_own.py",
    "regression.md": "tests/bridges/test_numpyro.py, tests/bridges/test_pymc.py",
}
"""Pages whose Python is run by tests of their own."""

SERVER = "a server: runs until stopped"
SHORT = "chains of any length show what the page says; that they end where they should is for other tests"
EVERYWHERE = [
    *(Instead(f"draws={n}, tune={n}", "draws=8, tune=8", SHORT) for n in (100, 60, 50, 20)),
    *(Instead(f'"draws": {n}, "tune": {n}', '"draws": 8, "tune": 8', SHORT) for n in (100, 60)),
    Instead("--draws 100 --tune 100", "--draws 8 --tune 8", SHORT),
]
"""What is run in place of a piece of any page: shorter chains."""

INSTEAD: dict[str, list[Instead]] = {
    "CONTRIBUTING.md": [
        Instead("git clone <this repository> && cd countveil\n", "", "the tests are in the clone already"),
        Instead("make docs ", ": ", INSTALLS),
        Instead("make test ", ": ", "is what runs this test"),
        Instead("make test-all ", ": ", "is what runs this test"),
    ],
    "README.md": [
        Instead("make demo ", ": ", INSTALLS),
        Instead("make test ", ": ", "is what runs this test"),
        Instead("n_topics=20, seed=1", "n_topics=2, draws=8, tune=8, chains=2, seed=1", SMALL),
        Instead("--topics 10,20,50", "--topics 1,2 --folds 2 --chains 1 --draws 5 --tune 5", SMALL),
        Instead("--topics 20", "--topics 2 --draws 8 --tune 8 --chains 2", SMALL),
    ],
    "index.md": [
        Instead("countveil fit topics", ": ", "the same command is run on README.md"),
        Instead("countveil report", ": ", "the same command is run on README.md"),
    ],
    "install.md": [
        Instead("python3 -m venv .venv\n. .venv/bin/activate\npip install '.[demo]'\n", "", INSTALLS),
    ],
    "study.md": [
        Instead("pip install '.[receive]'", ":", INSTALLS),
        Instead("--rows 200 --level 10:1 --level 10:5", "--rows 8 --replicates 2 --method em --level 10:5", SMALL),
        Instead("countveil receive study.json --db reports.sqlite", "python stored.py study.json", SERVER),
        Instead("people.py 200", "people.py 6", "a process for each of two hundred people"),
        Instead("--topics 2 --seed 1", "--topics 2 --seed 1 --draws 8 --tune 8 --chains 2", SMALL),
    ],
    "scale-and-servers.md": [
        Instead("pip install '.[dask]'", ":", INSTALLS),
        Instead("dask scheduler", ": dask scheduler", SERVER),
        Instead("dask worker", ": dask worker", SERVER),
        Instead("countveil fit", ": countveil fit", "needs the scheduler; tests/engines run it with one of their own"),
    ],
    "regression.md": [
        Instead("pip install '.[numpyro]'", ":", INSTALLS),
        Instead("pip install '.[pymc]'", ":", INSTALLS),
    ],
    "protected-data.md": [Instead("predict_counts(100, rng, around)", "predict_counts(10, rng, around)", SMALL)],
    "tutorial.md": [
        Instead("n_words=500", "n_words=60", SMALL),
        Instead("--topics 8 --seed 1", "--topics 8 --seed 1 --draws 9 --tune 9 --chains 2", SMALL),
        Instead("n_topics=8, seed=1", "n_topics=8, seed=1, draws=9, tune=9, chains=2", SMALL),
    ],
    "groups.md": [
        Instead("posts = load_posts()", "posts = type(load_posts())(*(each[::8] for each in load_posts()))", SMALL),
        Instead("--chains 8 --seed 1", "--chains 2 --draws 8 --tune 8 --seed 1", SMALL),
        Instead("(5, 8, 10)", "(5,)", SMALL),
        Instead("seeds=fit.seeds, seed=1", "seeds=fit.seeds, draws=8, tune=8, chains=2, seed=1", SMALL),
    ],
    "time.md": [
        Instead("--components 5 --seed 1", "--components 5 --seed 1 --draws 8 --tune 8 --chains 2", SMALL),
        Instead("--time times.csv --seed 1", "--time times.csv --seed 1 --draws 8 --tune 8 --chains 2", SMALL),
    ],
    "covariates.md": [
        Instead("--topics 3", "--topics 3 --draws 8 --tune 8 --chains 2", SMALL),
    ],
    "choosing.md": [
        Instead("folds=3", "folds=2, tune=20, draws=10", SMALL),
        Instead("--topics 5,10,20,50", "--topics 1,2 --folds 2 --draws 5 --tune 5", SMALL),
    ],
    "planning.md": [
        Instead("--level 1:1 --level 1:2 --level 1:3", "--level 1:1", SMALL),
        Instead("--topics 20", "--topics 2 --rows 8 --replicates 2 --method em", SMALL),
        Instead("--total 60 --topics 5", "--total 60 --topics 2 --rows 8 --replicates 2 --method em", SMALL),
    ],
    "collecting.md": [
        Instead("python3 -m venv alone\n", "", INSTALLS),
        Instead("alone/bin/python -m pip install --quiet --no-deps .", 'ln -s "$ALONE" alone', INSTALLS),
        Instead("pip install '.[postgres]'", ":", INSTALLS),
        Instead("countveil receive study.json --db postgresql", ": ", "a server, and a database that is not here"),
        Instead("countveil collect study.json postgresql", ": ", "a database that is not here"),
        Instead("countveil receive study.json --db reports.sqlite", "python stored.py study.json", SERVER),
        Instead("countveil audit --study study.json", "countveil audit --help", ELSEWHERE),
        Instead("seq 60", "seq 6", "a process or more for each of sixty people"),
        Instead("--components 4 --seed 1", "--components 2 --seed 1 --draws 10 --tune 10 --chains 2", SMALL),
    ],
}  # fmt: skip

COUNTS = """
import numpy as np, pandas as pd
import countveil as cv
rng = np.random.default_rng(1)
counts = pd.DataFrame(rng.poisson(2.0, (12, 6)), columns=["tax", "bank", "rate", "goal", "match", "team"])
level = cv.PrivacyLevel(epsilon=1, precision=1)
"""
SURVEY = f"""{COUNTS}
counts.to_csv("counts.csv", index=False)
cv.privatize(counts, level).save("survey.npz")
"""
STUDY = """
from pathlib import Path
from countveil.privacy import PrivacyLevel, study
words = ["surprise", "party", "cake", "budget", "meeting", "report"]
Path("word.txt").write_text("\\n".join(words))
made = study.new("Mail", "Topics.", "a@b.org", [PrivacyLevel(1, 10)], [("word", words)])
Path("study.json").write_text(made.to_json())
"""
OFFICE = """
from pathlib import Path
from countveil.privacy import PrivacyLevel, study
words = "surprise party cake candles balloon invite budget meeting report deadline invoice agenda".split()
levels = [PrivacyLevel(1, 10), PrivacyLevel(5, 10)]
address = "https://study.example.org/reports"
made = study.new("Offices", "Topics.", "study@example.org", levels, [("word", words)], address=address)
Path("study.json").write_text(made.to_json())
"""
STORED = """
import sys
from pathlib import Path
from countveil.privacy import report, study
from countveil.study.receive.store import Store
made = study.load(sys.argv[1])
kept = Store(Path("reports.sqlite"), made)
for who in ("a" * 32, "b" * 32):
    noisy = report.privatized([1] * made.cells, made, made.levels[0], who)
    kept.put(who, report.encode(noisy, made)).result(10)
kept.close()
"""
GIVEN = {
    "README.md": f"{SURVEY}\nreports, rate, alpha = counts, np.ones(counts.shape), level.alpha",
    "choosing.md": SURVEY,
    "planning.md": f"{COUNTS}{STUDY}\nfrom scipy import sparse\nsparse.save_npz('pilot.npz', sparse.csr_array(counts))",
    "study.md": f"from pathlib import Path\nPath('stored.py').write_text({STORED!r})",
    "collecting.md": f"{OFFICE}import json\nfrom countveil.study.page import strings\n"
    f"Path('de.json').write_text(json.dumps(strings()))\nPath('stored.py').write_text({STORED!r})",
    "bring-your-own.md": f"{COUNTS}\nreports, rates, alpha = counts, np.ones(counts.shape), level.alpha",
}
"""What a page takes for granted, as Python that is run before it in its folder."""


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order, without directives of the site."""
    text = re.sub(DIRECTIVES, lambda found: "\n" * found[0].count("\n"), page.read_text(encoding="utf-8"), flags=re.M)
    found = re.finditer(FENCED, text, re.MULTILINE)
    return [Block(m[1], m[2], text[: m.start()].count("\n") + 1) for m in found]


def as_run(page: Path, block: Block) -> str:
    """The text of a block as a test runs it."""
    text = block.text
    for piece in [*INSTEAD.get(page.name, []), *EVERYWHERE]:
        text = text.replace(piece.written, piece.run)
    return text


def run_page(page: Path, folder: Path, countveil: Path | None = None) -> dict:
    """Run all blocks of a page in a folder, one after another; the names that its Python leaves behind.

    Shells call ``countveil`` as a process of its own, or by a script in its place (``tests.served``).
    """
    left: dict = {}
    environment = shell_environment(folder, countveil)
    exec(GIVEN.get(page.name, ""), left)
    for block in blocks_of(page):
        text = as_run(page, block)
        if block.language == "sh":
            run_shell(text, folder, environment)
        elif block.language == "" or (block.language == "python" and page.name not in OTHERS):
            exec(compile("\n" * block.line + text, str(page), "exec"), left)
    return left


def run_sections(page: str, instead: tuple[str, str], *sections: str) -> dict:
    """What the Python blocks of these sections of a page leave behind; the last one has a text in place of another."""
    texts = {text.split("\n")[0]: text for text in (DOCS / page).read_text(encoding="utf-8").split("\n## ")}
    left: dict = {}
    for section in sections:
        for block in re.findall(r"```python\n(.*?)```", texts[section], re.DOTALL):
            exec(block.replace(*instead), left)
    assert instead[0] in texts[sections[-1]]
    return left


def run_shell(text: str, folder: Path, environment: dict[str, str]) -> None:
    """Run commands in a folder; a test fails with all that they said if one of them does."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def shell_environment(folder: Path, countveil: Path | None = None) -> dict[str, str]:
    """A PATH with this checkout's ``countveil``, and a Python with the standard library alone in $ALONE."""
    tools, alone = folder / ".tools", folder / ".alone" / "bin"
    source = f'PYTHONPATH="{ROOT / "src"}" exec "{sys.executable}"'
    own = f'{source} -m countveil "$@"'
    script(tools / "countveil", f'exec "{sys.executable}" -S -E "{countveil}" "$@"' if countveil else own)
    script(tools / "python", f'{source} "$@"')
    script(alone / "python", f'{source} -S -s "$@"')
    return os.environ | {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "ALONE": str(alone.parent),
        "COUNTVEIL_LEDGER": str(folder / ".ledger"),
    }


def script(path: Path, command: str) -> None:
    """Write a shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
