"""Every test file stands where what it tests does, or is about more than one file and says of what."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CROSS_CUTTING = {
    "test_imports.py": "who imports whom in the library, and how long its files are",
    "test_journey.py": "from a study file through twenty devices to topics, by commands alone",
    "test_layout.py": "where test files stand",
    "test_limits.py": "how long broken input takes, and how much memory",
    "test_repeatable.py": "noise that repeats while tests run, and only then",
    "test_wrong_claims.py": "what is said of wrong claims about the noise, and of right ones",
    "test_one_place.py": "formulas of the noise, which no other file writes out",
    "cli/test_published_tables.py": "tables as statistical offices publish them, from `look` to a release",
    "data/test_inputs.py": "ways in: annotated data, files and releases, from labels to the posterior",
    "data/test_read_only.py": "sparse arrays that users pass in, which stay as they are",
    "docs/test_pages.py": "every page: its code runs, its links lead somewhere, the reference and the site are whole",
    "fit/test_exposures.py": "what fits with exposures by cell say, in every result",
    "fit/test_intervals.py": "how often intervals hold the truth, in every method, and who prints none",
    "fit/test_labels.py": "labels, from every kind of input to the posterior of every model",
    "fit/test_left_out_cells.py": "what is predicted and scored of networks, in every model of them",
    "fit/test_learned_shapes.py": "learned shapes, in every model and method",
    "fit/test_sklearn.py": "scikit-learn's own checks, of every estimator",
    "fit/test_uncounted_cells.py": "self-loops, lower triangles and masks, in every model and method",
    "papers/test_cases.py": "every case study at a tiny size, and its verdicts",
    "fuzz/test_readers.py": "every reader of files from others, with files that were broken on purpose",
    "inference/test_any_mechanism.py": "the joint law and calibration, for reports of every mechanism",
    "inference/test_calibration.py": "simulation-based calibration of both samplers",
    "inference/test_calibration_of_bursts.py": "the same where counts come in bursts",
    "inference/test_calibration_of_factorizations.py": "the same for every kind of factorization",
    "inference/test_dynamics.py": "the joint law and calibration of gamma chains over time",
    "inference/test_covariates.py": "the joint law and calibration where the rows have covariates",
    "inference/test_seeds.py": "the joint law and the numbers of topics with seeds",
    "inference/test_dated_rows.py": "the joint law and calibration where the rows have dates",
    "inference/test_layered_rows.py": "the joint law and calibration where rows have layers of topics",
    "inference/test_factorized_runs.py": "threads and checkpoints, for every kind of factorization",
    "inference/test_joint_law.py": "the joint law that steps leave as it is, for every kind of factorization",
    "inference/test_levels.py": "the joint law and calibration where every cell has a level",
    "inference/test_masks.py": "masked cells, in every method",
    "inference/test_exposures.py": "exposures by cell, in every method",
    "inference/test_offsets.py": "known offsets of rows and columns, in every method",
    "inference/test_posterior_means.py": "posteriors against slow chains and integrals on a grid",
    "study/page/test_browser.py": "the page as a participant uses it, in Chromium",
    "study/page/test_noise_in_browser.py": "the page's noise in Chromium, by the tests of the Python noise",
    "privacy/test_alone.py": "the owner's wing on a device with nothing installed",
    "recipes/test_bursts.py": "the recipe of a likelihood that has a parameter of its own",
    "recipes/test_uniform.py": "a mechanism that Reports read, added by its recipe",
    "recipes/test_recipes.py": "the recipes of CONTRIBUTING: a toy mechanism, likelihood, prior and algorithm",
    "report/browse/test_browser.py": "the page on which a fit is browsed, in Chromium",
    "report/test_browser.py": "the page about a fit, in Chromium",
}
"""Test files that mirror no single file, and what each is about."""


def mirrored(test: Path, root: Path) -> list[Path]:
    """The files that a test file may be about, by its path below ``tests``.

    ``a/test_b.py`` is about ``src/countveil/a/b.py``, ``_b.py`` or ``__b__.py``; ``study/page/test_b_script.py`` about
    ``b.js`` there; ``docs/test_a_b.py`` about ``docs/a-b.md``; those of ``benchmarks`` and ``papers`` about files of
    these folders.
    """
    folder, name = test.parent, test.stem.removeprefix("test_")
    if folder.parts[:1] == ("docs",):
        return [root / folder / f"{name.replace('_', '-')}.md"]
    if folder.parts[:1] in {("benchmarks",), ("papers",)}:
        return [root / folder / f"{each}.py" for each in (name, f"__{name}__")]
    source = root / "src" / "countveil" / folder
    scripts = [source / f"{name.removesuffix('_script')}.js"] if name.endswith("_script") else []
    return [*(source / f"{each}.py" for each in (name, f"_{name}", f"__{name}__")), *scripts]


def without_mirror(root: Path) -> set[str]:
    """The test files of a project that mirror nothing, by their paths below ``tests``."""
    tests = root / "tests"
    found = (path.relative_to(tests) for path in tests.rglob("test_*.py"))
    return {path.as_posix() for path in found if not any(each.is_file() for each in mirrored(path, root))}


def test_every_test_file_mirrors_a_file_or_is_listed():
    assert without_mirror(ROOT) == set(CROSS_CUTTING)


@pytest.mark.parametrize(
    ("source", "test"),
    [
        ("src/countveil/common/files.py", "common/test_files.py"),
        ("src/countveil/data/frames.py", "data/test_frames.py"),
        ("src/countveil/privacy/_format.py", "privacy/test_format.py"),
        ("src/countveil/privacy/__main__.py", "privacy/test_main.py"),
        ("src/countveil/study/page/noise.js", "study/page/test_noise_script.py"),
        ("docs/bring-your-own.md", "docs/test_bring_your_own.py"),
        ("benchmarks/billion.py", "benchmarks/test_billion.py"),
    ],
)
def test_a_test_file_elsewhere_is_found(tmp_path, source, test):
    for path in (tmp_path / source, tmp_path / "tests" / test, tmp_path / "tests" / "elsewhere" / test):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert without_mirror(tmp_path) == {f"elsewhere/{test}"}
    (tmp_path / source).unlink()
    assert without_mirror(tmp_path) == {test, f"elsewhere/{test}"}
