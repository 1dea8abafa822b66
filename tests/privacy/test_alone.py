"""The owner's wing on a device with nothing installed."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from countveil.privacy import PrivacyLevel, Release

SOURCE = Path(__file__).parents[2] / "src"

ALONE = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "scipy", "pandas", "numba", "sklearn", "xarray"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nothing())
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
import countveil.privacy
from countveil.privacy import PrivacyLevel, Release, privatize
foreign = {n.partition(".")[0] for n in set(sys.modules) - before} - sys.stdlib_module_names - {"countveil"}
assert not foreign, foreign

folder = sys.argv[2]
level = PrivacyLevel("0.5", 2)
quiet = PrivacyLevel(1000, 1)
one = privatize({"veil": 3, "é": 2**62}, quiet, vocabulary=["count", "veil", "é"], row_labels=["me"])
assert one.reports == [[0, 3, 2**62]], "mapping"
deep = privatize([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], quiet)
assert deep.reports == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]] and deep.shape == (2, 2, 2)
assert privatize([4, 5], quiet).reports == [4, 5]
each = privatize([[0] * 400, [0] * 400], [level, quiet], truncate=True)
assert any(each.reports[0]) and min(each.reports[0]) == 0 and not any(each.reports[1])
assert each.alpha == (level.alpha, 0.0) and "Every row" in each.describe()
for name, release in {"one": one, "deep": deep, "each": each}.items():
    path = f"{folder}/{name}.npz"
    release.save(path)
    again = Release.load(path)
    for part in ("reports", "mechanism", "levels", "truncated", "labels", "shape", "schema_hash"):
        assert getattr(again, part) == getattr(release, part), (name, part)
try:
    privatize([[1, -5]], level)
except ValueError as error:
    assert str(error).endswith("got a negative value at index (0, 1)"), error
try:
    Release.load(f"{folder}/sparse.npz")
except ModuleNotFoundError as error:
    assert "reading it needs NumPy and SciPy" in str(error)
else:
    raise SystemExit("sparse")
assert each.mechanism == (level.mechanism, quiet.mechanism)
gauss = PrivacyLevel.zcdp("0.125")
noisy = privatize([[0] * 400], gauss)
noisy.save(f"{folder}/noisy.npz")
assert min(noisy.reports[0]) < 0 and Release.load(f"{folder}/noisy.npz").levels == gauss
import countveil
assert countveil.mechanisms.from_json(level.mechanism.to_json()) == level.mechanism
import countveil.study.page
from countveil.privacy import study
asked = study.new("Mail", "To learn.", "a@b.org", [level], [("word", ["veil"])])
assert countveil.study.page.page(asked).startswith("<!DOCTYPE html>")
print("alone", *sorted(m for m in sys.modules if m.partition(".")[0] in {"numpy", "scipy", "pandas"}))
"""


def test_the_standard_library_is_enough(tmp_path):
    reports = sp.csr_array(np.array([[0, 5], [7, 0]]))
    Release(reports, PrivacyLevel(1, 2), True).save(tmp_path / "sparse.npz")
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", textwrap.dedent(ALONE), str(SOURCE), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "alone"
    one = Release.load(tmp_path / "one.npz")
    assert one.reports.tolist() == [[0, 3, 2**62]]
    assert one.labels == (("me",), ("count", "veil", "é"))
    one.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "one.npz").read_bytes()


def test_importing_the_wing_imports_no_numpy():
    code = "import sys, countveil.privacy; sys.exit(any(m in sys.modules for m in ('numpy', 'scipy', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_with_p_no_module_of_the_current_folder_is_imported(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the folder')")

    def ran(*options):
        command = [sys.executable, *options, "-m", "countveil.privacy", "--help"]
        surroundings = os.environ | {"PYTHONPATH": str(SOURCE)}
        return subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False)

    assert "a module of the folder" in ran().stderr
    found = ran("-P")
    assert found.returncode == 0, found.stderr
    assert "usage" in found.stdout
