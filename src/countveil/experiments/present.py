"""The demo from beginning to end: run, print, and write its files."""

from pathlib import Path

from countveil.common.console import ProgressWatcher, console, error_console
from countveil.common.files import replacing, write_csv
from countveil.experiments import corpora
from countveil.experiments.corpora import Corpus
from countveil.experiments.demo import Plan, Study, run
from countveil.experiments.exhibits import (
    notes,
    score_table,
    summary,
    topics_table,
    verdict_lines,
    verdicts,
    words_table,
)
from countveil.experiments.figures import save_figure
from countveil.planning.contenders import LEAST_SQUARES, NAIVE, OURS


def present(plan: Plan, output: Path, corpus: Corpus | None = None) -> Study:
    """Run the demo on a corpus (None for Reuters), print its tables and write its files to ``output``.

    Raises:
        ModuleNotFoundError: a package of the extra ``demo`` is missing.
        ValueError: as ``demo.run``.
        OSError: ``output`` cannot be written to.
    """
    corpus = corpora.load_reuters() if corpus is None else corpus
    output.mkdir(parents=True, exist_ok=True)
    with ProgressWatcher(error_console()) as watcher:
        study = run(corpus, plan, watcher)
        watcher.stage("scored; writing files")
        written = write_files(study, output)
    screen = console()
    n_documents, n_words = corpus.counts.shape
    screen.print(
        f"{n_documents} documents x {n_words} words, {plan.sampling.n_topics} topics; exact noise on every cell, "
        f"{plan.noise_draws} fresh draws per level.",
        highlight=False,
    )
    screen.print(score_table(study.fits))
    screen.print(notes(), highlight=False)
    screen.print(words_table(study, corpus))
    screen.print(verdict_lines(verdicts(study.fits, OURS.name, NAIVE.name, LEAST_SQUARES.name)))
    screen.print(topics_table(study))
    screen.print(study.printed.diagnostics().line, highlight=False)
    screen.print("Wrote " + ", ".join(str(path) for path in written), highlight=False, soft_wrap=True)
    return study


def write_files(study: Study, output: Path) -> list[Path]:
    """The release, the table, every fit's scores and the figure; each is replaced in one step."""
    paths = [output / name for name in ("release.npz", "scores.csv", "fits.csv", "scores.png")]
    study.release.save(paths[0])
    write_csv(summary(study.fits), paths[1])
    write_csv(study.fits, paths[2])
    with replacing(paths[3]) as path:
        save_figure(study.fits, path)
    return paths
