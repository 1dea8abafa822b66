"""Who imports whom in src/countveil: arrows run down, in no circle.

An arrow leads from a module to one that it imports, at the top or inside a function. An import of ``a.b`` from
outside ``a`` runs ``a`` as well, and is an arrow to both. ``import_module`` counts by what its argument begins with.
What is imported under ``if TYPE_CHECKING:`` does not run: it may close a circle, but must not point up either.
"""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1] / "src" / "countveil"
PACKAGE = "countveil"

LAYERS = (
    {"__main__"},
    {"cli"},
    {"experiments"},
    {"planning", "report"},
    {"bridges", "fit"},
    {"selection"},
    {"plotting"},
    {"inference"},
    {"engines"},
    {"data", "distributions", "evaluation", "models"},
    {"laws.counts"},
    {"laws.noise"},
    {"laws"},
    {"kernels"},
    # The data owner's side: so far down that it can import nothing of the analyst's.
    {"bridges.privatizer", "data.simulation", "study.audit", "study.collect", "study.page", "study.receive"},
    {"common", "study"},
    {"privacy"},
)
"""From top to bottom: a package or module may import itself and what is further down, but nothing beside it.

``a.b`` stands for that part of ``a``, which has a place of its own; ``a`` stands for the rest of it.
"""


OF_KERNELS = {"collections", "functools", "llvmlite", "math", "numba", "numpy", "typing"}
OF_KEEPING = {
    "hashlib",
    "pathlib",
    "contextlib",
    "os",
    "stat",
    "warnings",
}  # besides these, where compiled functions are put on disk


class Arrow(NamedTuple):
    """One module imports another."""

    importer: str
    imported: str
    runs: bool  # not under TYPE_CHECKING


def name_of(path: Path, root: Path) -> str:
    """The dotted name of a source file; a package has that of its folder."""
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(root: Path) -> dict[str, Path]:
    """Every module below a package's folder, by name."""
    return {name_of(path, root): path for path in sorted(root.rglob("*.py"))}


def imports(path: Path, name: str) -> Iterator[tuple[str, str, bool]]:
    """(module, name in it or nothing, whether it runs) of every import in a file, wherever it stands."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), True)]
    while waiting:
        node, runs = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", runs) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((module, alias.name, runs) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            yield beginning(node.args[0]), "", runs
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += [(child, False) for child in node.body] + [(child, runs) for child in node.orelse]
        else:
            waiting += [(child, runs) for child in ast.iter_child_nodes(node)]


def beginning(argument: ast.expr) -> str:
    """The text that a string or an f-string begins with, without the dot at its end."""
    first = argument.values[0] if isinstance(argument, ast.JoinedStr) and argument.values else argument
    return first.value.rstrip(".") if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def arrows(root: Path) -> set[Arrow]:
    """Every arrow among the modules below a folder. The version is not one: it stands in the package itself."""
    modules, found = sources(root), set()
    for importer, path in modules.items():
        for module, name, runs in imports(path, importer):
            if module.partition(".")[0] != root.name or (module, name) == (root.name, "__version__"):
                continue
            inner = f"{module}.{name}"
            target = inner if inner in modules else module
            parts = target.split(".")
            above = [".".join(parts[:n]) for n in range(2, len(parts))]
            run = [parent for parent in above if not f"{importer}.".startswith(f"{parent}.")]
            found |= {Arrow(importer, each, runs) for each in (*run, target) if each != importer}
    return found


def unit_of(name: str) -> str:
    """The part of the library that a module belongs to: the name that LAYERS has for it."""
    parts = name.removeprefix(f"{PACKAGE}.").split(".")
    within = ".".join(parts[:2])
    return within if any(within in units for units in LAYERS) else parts[0]


def layer_of(unit: str) -> int:
    """The place of a part of the library in LAYERS.

    Raises:
        ValueError: it has none.
    """
    for place, units in enumerate(LAYERS):
        if unit in units:
            return place
    raise ValueError(f"{unit} must stand in one of LAYERS, between what it imports and what imports it")


def points_up(arrow: Arrow) -> bool:
    """Whether an arrow leads to a layer above, to a neighbour in the same one, or to or from the package itself."""
    if PACKAGE in (arrow.importer, arrow.imported):
        return True
    above, below = unit_of(arrow.importer), unit_of(arrow.imported)
    return above != below and layer_of(below) <= layer_of(above)


def upwards(found: set[Arrow]) -> set[tuple[str, str]]:
    """The arrows that do not run down."""
    return {(arrow.importer, arrow.imported) for arrow in found if points_up(arrow)}


def circle(found: set[Arrow]) -> list[str]:
    """Modules of which each imports the next, from one back to itself; none if there is no such circle."""
    graph: dict[str, set[str]] = {}
    for arrow in sorted(found):
        if arrow.runs:
            graph.setdefault(arrow.importer, set()).add(arrow.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def importers(found: set[Arrow], unit: str) -> set[str]:
    """The parts of the library that import one of them."""
    return {unit_of(arrow.importer) for arrow in found if unit_of(arrow.imported) == unit}


def strangers_to_kernels(root: Path) -> set[tuple[str, str]]:
    """(module, import) of kernels that import anything but OF_KERNELS and kernels."""
    keeping = f"{root.name}.kernels.keeping"
    return {
        (name, module)
        for name, path in sources(root).items()
        if name.startswith(f"{root.name}.kernels")
        for module, _, _ in imports(path, name)
        if module.partition(".")[0] not in (OF_KERNELS | OF_KEEPING if name == keeping else OF_KERNELS)
        and not f"{module}.".startswith(f"{root.name}.kernels.")
    }


@pytest.fixture(scope="module")
def drawn():
    """The arrows of the library."""
    return arrows(ROOT)


def test_every_arrow_runs_down(drawn):
    assert upwards(drawn) == set()


def test_there_is_no_circle(drawn):
    assert circle(drawn) == []


def test_nothing_imports_the_command_line_and_only_it_imports_experiments(drawn):
    assert importers(drawn, "cli") == {"__main__", "cli"}
    assert importers(drawn, "experiments") == {"cli", "experiments"}


def test_kernels_import_nothing_else():
    assert strangers_to_kernels(ROOT) == set()


def test_a_package_stands_in_one_layer():
    assert sum(map(len, LAYERS)) == len(set().union(*LAYERS))


# Each of these checks finds what is planted in a small package of the same shape.


@pytest.fixture
def planted(tmp_path):
    """Writes files, {path without its ending: text}, below an otherwise empty package; gives its folder."""

    def write(files: dict[str, str]) -> Path:
        root = tmp_path / PACKAGE
        for name, text in {"__init__": "__version__ = '1'", **files}.items():
            path = root / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    return write


UPWARDS = {
    "at the top": "from countveil.fit import base",
    "a module by its name": "import countveil.fit.base as base",
    "inside a function": "def f():\n    from countveil.fit.base import fit",
    "inside a class and a branch": "class C:\n    if True:\n        import countveil.fit.base",
    "relative": "from ..fit import base",
    "by a string": "from importlib import import_module\nimport_module('countveil.fit.base')",
    "by an f-string": "import importlib\nimportlib.import_module(f'countveil.fit.{1}')",
    "for types only": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import countveil.fit.base",
}


@pytest.mark.parametrize("text", UPWARDS.values(), ids=UPWARDS)
def test_an_arrow_that_points_up_is_found(planted, text):
    root = planted({"inference/run": text, "fit/base": "def fit(): pass"})
    found = upwards(arrows(root))
    assert found
    assert {importer for importer, _ in found} == {"countveil.inference.run"}
    assert {imported for _, imported in found} <= {"countveil.fit", "countveil.fit.base"}


def test_arrows_that_run_down_are_let_be(planted):
    down = "import numpy\nfrom countveil import __version__\nfrom countveil.inference import run\nfrom . import topics"
    root = planted({"fit/base": down, "fit/topics": "", "inference/run": ""})
    assert {arrow.imported for arrow in arrows(root)} == {
        "countveil.inference", "countveil.inference.run", "countveil.fit.topics",
    }  # fmt: skip
    assert upwards(arrows(root)) == set()
    assert circle(arrows(root)) == []


def test_neighbours_do_not_import_each_other(planted):
    root = planted({"planning/present": "import countveil.report.page", "report/page": ""})
    assert ("countveil.planning.present", "countveil.report.page") in upwards(arrows(root))


def test_the_package_itself_is_imported_for_its_version_only(planted):
    root = planted({"cli/app": "from countveil import __version__, TopicModel"})
    assert upwards(arrows(root)) == {("countveil.cli.app", "countveil")}


def test_the_package_itself_imports_nothing(planted):
    root = planted({"__init__": "from countveil.privacy import Release", "privacy/__init__": ""})
    assert upwards(arrows(root)) == {("countveil", "countveil.privacy")}


def test_a_package_without_a_layer_is_named(planted):
    root = planted({"cli/app": "import countveil.attic"})
    with pytest.raises(ValueError, match="attic must stand in one of LAYERS"):
        upwards(arrows(root))


CIRCLES = {
    "of two": {"data/one": "from countveil.data import two", "data/two": "import countveil.data.one"},
    "of three, one of them lazy": {
        "data/one": "from countveil.data.two import f",
        "data/two": "from .three import f",
        "data/three": "def f():\n    from countveil.data.one import f",
    },
    "through a package that re-exports": {
        "data/__init__": "from countveil.data.one import f",
        "data/one": "from countveil.data import f",
    },
    "through another package's own imports": {
        "data/__init__": "from countveil.data.one import f",
        "data/one": "import countveil.models.spec",
        "models/spec": "",
        "models/__init__": "def f():\n    import countveil.data.two",
        "data/two": "",
    },
}


@pytest.mark.parametrize("files", CIRCLES.values(), ids=CIRCLES)
def test_a_circle_is_found(planted, files):
    drawn = arrows(planted(files))
    found = circle(drawn)
    assert found[0] == found[-1]
    assert len(found) >= 3
    assert {*pairwise(found)} <= {(arrow.importer, arrow.imported) for arrow in drawn}


def test_what_is_no_circle_is_let_be(planted):
    for_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from countveil.data.two import f"
    again = "from countveil.data.one import f"
    root = planted({"data/__init__": again, "data/one": for_types, "data/two": "from countveil.data import one"})
    assert circle(arrows(root)) == []


@pytest.mark.parametrize("unit", ["cli", "experiments"])
def test_who_imports_the_top_is_found(planted, unit):
    root = planted({"report/page": f"def f():\n    from countveil.{unit}.app import f", f"{unit}/app": ""})
    assert importers(arrows(root), unit) == {"report"}


@pytest.mark.parametrize("text", ["import scipy", "from countveil.data import f", "def f():\n    import pandas"])
def test_what_kernels_must_not_import_is_found(planted, text):
    clean = "import math\nimport numpy as np\nfrom numba import njit\nfrom countveil.kernels.laws import f"
    assert strangers_to_kernels(planted({"kernels/gibbs": clean})) == set()
    found = strangers_to_kernels(planted({"kernels/gibbs": text}))
    assert {name for name, _ in found} == {"countveil.kernels.gibbs"}


def test_a_part_of_a_room_may_have_a_layer_of_its_own(planted):
    noise = "from countveil.laws.counts import poisson"
    root = planted(
        {"laws/__init__": "", "laws/counts/__init__": "", "laws/counts/poisson": "", "laws/noise/law": noise}
    )
    assert ("countveil.laws.noise.law", "countveil.laws.counts.poisson") in upwards(arrows(root))
