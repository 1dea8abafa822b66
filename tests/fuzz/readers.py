"""What is fuzzed: for each kind of file the valid ones, the ways to break them, and everything that reads them."""

import csv
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp

from countveil.cli.mechanism_options import MechanismTable
from countveil.cli.releases import check_imported, in_words, loaded
from countveil.common.console import console
from countveil.data import joined_files
from countveil.data.io import read_counts, read_vocabulary
from countveil.data.reports import observations_of
from countveil.data.tables.cells import Words
from countveil.data.tables.published import read_protected
from countveil.fit.naming import changed, relabel_from
from countveil.privacy import PrivacyLevel, Release, _archive, report, study
from countveil.privacy._cells import ByCell
from countveil.privacy._extras import Extras
from countveil.privacy.mechanisms import Laplace, RandomRounding, Suppression
from countveil.privacy.report import Report
from tests.fuzz import mutations as m
from tests.fuzz.mutations import Mutation

LEVELS = [PrivacyLevel(1, 2), PrivacyLevel("0.1", 3)]
WORDS = ["surprise", "party", "five"]
STUDY = study.new("Surprises", "To learn.", "a@b.org", LEVELS, [("word", WORDS)])


class Kind(NamedTuple):
    """A kind of file: its valid files by name, the ways to break them, and what reads them."""

    files: dict[str, bytes]
    changes: tuple[Mutation, ...]
    read: Callable[[Path], None]
    weight: int  # how many of about a thousand mutations it gets, fewer where they take long


def releases() -> dict[str, bytes]:
    """Dense, sparse and signed ones, with labels and without, with one level and several, of rho."""
    sparse = sp.csr_array(np.array([[0, 5, 0], [7, 0, 2]]))
    made = {
        "sparse.npz": Release(sparse, LEVELS, True, (("ann", "bo"), ("x", "é", "\U0001f512"))),
        "dense.npz": Release(np.arange(12).reshape(2, 3, 2), LEVELS[0], True),
        "signed.npz": Release(np.array([[-3, 2], [0, 70000]]), LEVELS[1], False, (None, ("a", "b")), True),
        "rounded.npz": Release(np.array([[3, 0], [6, 9]]), RandomRounding(3), False),
        "rho.npz": Release(np.array([[-3, 2], [0, 7]]), [PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp(2)], False),
    }
    return {name: _saved(each.save, name) for name, each in made.items()}


def imported() -> dict[str, bytes]:
    """Releases of reports that others published: dense with absent and real ones, and sparse."""
    other = [Suppression(10), Laplace(2)]
    cells = ByCell((*other, RandomRounding(3)), (0, 1, 2, 0), (2, 2))
    made = {
        "hidden.npz": Release(np.array([[np.nan, 12], [0.5, -3]]), other, False, source="Others, 2020"),
        "margins.npz": Release(
            np.array([[np.nan, 12], [0, np.nan]]),
            other[0],
            False,
            source="Others",
            extras=Extras(totals=[((1,), (15, None))]),
        ),
        "families.npz": Release(
            np.array([[np.nan, 12], [0, np.nan]]),
            other[0],
            False,
            source="Others",
            extras=Extras(
                totals=[((1,), (15, 3), RandomRounding(3)), (None, (12, None), None, [1, 0, 0, -1], ("a", "b"))]
            ),
        ),
        "cells.npz": Release(
            np.array([[np.nan, 0.5], [0, 12]]),
            cells,
            False,
            source="Others",
            extras=Extras(mask=[[False] * 2, [True, False]]),
        ),
        "rounded.npz": Release(sp.csr_array([[0, 3], [6, 0]]), RandomRounding(3), True, source="Others"),
    }
    return {name: _saved(each.save, name) for name, each in made.items()}


def joined() -> dict[str, bytes]:
    """Releases of the same counts in one file: with labels and without, of several mechanisms, imported ones."""
    rows, columns = ("ann", "bo"), ("x", "y")
    first = Release(np.array([[5, 0], [2, 7]]), LEVELS, True, (rows, columns))
    second = Release(np.array([[3, 1]]), PrivacyLevel.zcdp(2), False, (rows[1:], columns))
    rounded = Release(np.array([[0, 3], [6, 0]]), RandomRounding(3), True, source="Others")
    made = {
        "named.npz": [first, second],
        "unnamed.npz": [Release(np.array([[4, 1], [6, 0]]), LEVELS[0], True), rounded],
    }
    return {name: _saved(lambda path, each=each: joined_files.write(path, each), name) for name, each in made.items()}


def rejoined(content: bytes, rng: random.Random) -> bytes:
    """Joined releases, one of which was changed, left out or doubled, under seals that all hold."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        releases = [archive.read(name) for name in archive.namelist()[1:]]
    place, kind = rng.randrange(len(releases)), rng.randrange(8)
    if kind == 0:
        del releases[place]
    elif kind == 1:
        releases.append(releases[place])
    else:
        releases[place] = m.mutated_release(releases[place], rng)
    return _archive.packed(joined_files.members_of(releases), zipfile.ZIP_STORED)


def read_joined(path: Path) -> None:
    """Load all of them, say what they are, and take their reports for a fit."""
    found = loaded(path)
    if not isinstance(found, Release):
        in_words(found)
    observations_of(found)


def read_release(path: Path) -> None:
    """Load it, describe it, and take its reports for a fit."""
    found = Release.load(path)
    found.describe()
    found._repr_html_()
    check_imported(path, found)
    observations_of(found)


def reports() -> dict[str, bytes]:
    """Reports of one study at both levels."""
    return {
        f"{place}.json": report.encode(Report(f"{place:032x}", level, [0, place, 7]), STUDY)
        for place, level in enumerate(LEVELS)
    }


def sealed_report(content: bytes, rng: random.Random) -> bytes:
    """A report with a value changed and a seal that holds."""
    import hashlib

    found = m.mutated_json(content, rng).rstrip()
    head = found.rpartition(b',"sha256":')[0] or found[:-1]
    return head + b',"sha256":"%s"}\n' % hashlib.sha256(head).hexdigest().encode()


def read_report(path: Path) -> None:
    """Load it as a report of the study."""
    report.load(path, STUDY)


def studies() -> dict[str, bytes]:
    """One about words, one about categories on two axes, one of rho."""
    axes = [("to", ["ann", "bob"]), ("day", ["Mon", "Tue"])]
    other = study.new(
        "Days", "To see.", "b@c.org", LEVELS[:1], axes,
        kind=study.CATEGORIES, truncated=False, address="https://example.org/reports",
    )  # fmt: skip
    rho = study.new("Mail", "To see.", "b@c.org", [PrivacyLevel.zcdp("0.125")], [("word", WORDS)], truncated=False)
    made = {"words": STUDY, "days": other, "rho": rho}
    return {f"{name}.json": each.to_json().encode() for name, each in made.items()}


def rehashed(content: bytes, rng: random.Random) -> bytes:
    """A study with a value changed and the id that it then has."""
    import hashlib
    import json

    value = json.loads(content)
    value.pop("id")
    value = m.mutated_value(value, rng)
    if isinstance(value, dict):
        value["id"] = hashlib.sha256(m.canonical(value)).hexdigest()
    return m.canonical(value)


def read_study(path: Path) -> None:
    """Load it and describe it."""
    study.load(path).describe()


@cache
def fits() -> dict[str, bytes]:
    """Topics by a sampler and by an optimiser that can go on, and communities; the same bytes every time."""
    import warnings

    from countveil.data.observations import PrivatizedCounts
    from countveil.fit import BlockModel, TopicModel
    from countveil.inference.methods import SVI

    reports = np.random.default_rng(1).poisson(1.5, (5, 5))
    short = {"seed": 1, "draws": 3, "tune": 1, "chains": 2, "threads": 1, "progress": False}
    words = [f"word{i}" for i in range(5)]
    data = PrivatizedCounts(reports, 0.4, column_labels=words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = {
            "topics.nc": TopicModel(2, **short).fit(data),
            "stream.nc": TopicModel(2, method=SVI(passes=1), **short).fit(data),
            "blocks.nc": BlockModel(2, **short).fit(reports_between(reports)),
        }
    for each in made.values():
        each.posterior_.attrs["seconds"] = 1.0
    return {name: _saved(each.save, name) for name, each in made.items()}


@cache
def compact_fits() -> dict[str, bytes]:
    """Draws that are rounded and packed, and a summary in the place of some; the same bytes every time."""
    from unittest.mock import patch

    from countveil.data.observations import PrivatizedCounts
    from countveil.fit import BlockModel, TopicModel
    from countveil.inference import compact
    from countveil.inference.methods import SVI

    reports = np.random.default_rng(1).poisson(1.5, (5, 5))
    data, short = PrivatizedCounts(reports, 0.4), {"seed": 1, "draws": 4, "threads": 1, "progress": False}
    made = {
        "rows.nc": TopicModel(2, method=SVI(passes=1, keep="summary"), **short).fit(data),
        "packed.nc": BlockModel(2, tune=1, chains=2, **short).fit(reports_between(reports)),
    }
    for each in made.values():
        each.posterior_.attrs["seconds"] = 1.0
    with patch.object(compact, "MOST_EXACT", 0), patch.object(compact, "LEAST_DRAWS", 2):
        return {name: _saved(each.save, name) for name, each in made.items()}


class Named:
    """As much of a fit as names are given to."""

    _reader = SimpleNamespace(kinds=(SimpleNamespace(one="topic", axes=("word",)),))
    posterior = MappingProxyType({"posterior": {"word": ("tax", "bank", "rate")}})

    @property
    def parts(self) -> "Named":
        """Its tables."""
        return self

    def supported(self, axis: str, n: int) -> pd.DataFrame:
        """Its first members."""
        return pd.DataFrame({"component": [0, 0, 1, 1], "member": ["tax", "bank", "rate", "tax"]})

    def relabel(self, names: dict[int, str | None], axis: str) -> None:
        """Refuse names that it cannot have."""
        changed({}, names, range(2))


def names() -> dict[str, bytes]:
    """Two names, of which one is taken away."""
    stated = {"0": {"leading": "tax, bank", "name": "money"}, "1": {"leading": "rate, tax", "name": None}}
    return {"names.json": json.dumps({"topic": stated}).encode()}


def read_names(path: Path) -> None:
    """Give them to components."""
    relabel_from(Named(), path)


def reports_between(reports: np.ndarray) -> object:
    """Reports as those of a network."""
    from countveil.data.observations import PrivatizedCounts

    return PrivatizedCounts(reports, 0.4)


def read_fit(path: Path) -> None:
    """Load it, and what a page says of it, except its pictures."""
    import warnings

    from countveil.common import fit_files
    from countveil.fit import load

    # a process for each would take half a second
    fit_files._inspected = lambda _, path: fit_files.inspect(path)
    found = load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.diagnostics()
        found.rate()
        for part in found._reader.kinds:
            for axis in part.axes:
                members = found.parts.members(axis, 3)
                console().print(members.to_string(), markup=False)


def read_broken_fit(path: Path) -> None:
    """Load it, checked in a process of its own."""
    from countveil.common import fit_files
    from countveil.fit import load

    fit_files.LEAST_SECONDS = 5.0
    load(path)


def tables() -> dict[str, bytes]:
    """Counts in every format that is read, and a vocabulary."""
    counts = np.array([[0, 3, 1], [2, 0, 7]])
    text = io.StringIO()
    csv.writer(text).writerows([["", "a", "b", "c"], ["x", 0, 3, 1], ["y", 2, 0, 7]])
    bag = b"2\n3\n3\n1 2 3\n1 3 1\n2 3 7\n"
    return {
        "counts.csv": text.getvalue().encode(),
        "counts.npy": _saved(lambda path: np.save(path, counts), "a.npy"),
        "counts.npz": _saved(lambda path: sp.save_npz(path, sp.csr_array(counts)), "a.npz"),
        "coo.npz": _saved(lambda path: sp.save_npz(path, sp.coo_array(counts)), "a.npz"),
        "counts.mtx": _saved(lambda path: scipy.io.mmwrite(path, sp.csr_array(counts)), "a.mtx"),
        "dense.mtx": _saved(lambda path: scipy.io.mmwrite(path, counts), "a.mtx"),
        "bag.txt": bag,
        "bag.txt.gz": gzip.compress(bag, 1, mtime=0),
        "vocabulary.vocab": b"a\nb\nc\n",
    }


def protected() -> dict[str, bytes]:
    """Tables of reports with absent and real ones, as `countveil import` reads them."""
    return {
        "wide.csv": b'county,a,b\nx,0.5,"<10"\ny,-3,\n',
        "wide.tsv": b"\ta\tb\nx\t0.5\t<10\ny\t-3\t\n",
        "office.csv": "Titel\n;;männlich;\n;;2021;2022\n01;Süd;1 021;<5\n02;Nord;1-9;<10\n___\n(C)\n".encode("cp1252"),
        "wonder.txt": b'"County"\t"n"\r\n"a"\t12\r\n"b"\t<10\r\n"---"\r\n"made up"\r\n',
        "wide.npy": _saved(lambda path: np.save(path, np.array([[np.nan, 0.5], [3, -2]])), "a.npy"),
    }


def read_protected_table(path: Path) -> None:
    """Read it with a word for what is absent, and one for what was never reported."""
    read_protected(path, words=Words(("<10",), ("-3",)))


def mechanism_tables() -> dict[str, bytes]:
    """Files with a mechanism in each row, by value and by range."""
    return {
        "value.csv": b"regime,mechanism,below,base\na,suppression,10,\nb,rounding,,5\n",
        "range.csv": b"day from,day to,mechanism,sigma,alpha\n,5,gaussian,2,\n6,,two-sided-geometric,,0.5\n",
    }


def read_mechanisms(path: Path) -> None:
    """Read it, and ask for one."""
    found = MechanismTable(path)
    found.of([keys[-1] or "7" for keys, _ in found.rows])


def changed_table(content: bytes, rng: random.Random) -> bytes:
    """A table changed in the way that its format has: by members, by lines, or by bytes."""
    if content.startswith(b"PK"):
        return m.mutated_zip(content, rng)
    if content.startswith(b"\x1f\x8b"):
        return m.unpacked(m.mutated_table)(content, rng)
    if content.startswith(b"\x93NUMPY"):
        return m.flipped(content[:128], rng) + content[128:]
    return m.mutated_table(content, rng)


def read_table(path: Path) -> None:
    """Read it as counts; a matrix that was read is as large as it says."""
    if path.suffix == ".vocab":
        read_vocabulary(path)
        return
    found = read_counts(path)
    if found.values.size < 10**6:
        np.asarray(found.values.toarray() if sp.issparse(found.values) else found.values).sum()


def _saved(save: Callable[[str], object], name: str) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        save(f"{folder}/{name}")
        return (Path(folder) / name).read_bytes()


def kind_of(name: str) -> Kind:
    """Everything about a kind of file."""
    if name == "release":
        return Kind(releases(), (m.mutated_release, m.mutated_release, m.flipped, m.cut), read_release, 260)
    if name == "fit":
        return Kind(fits(), (m.mutated_fit, m.mutated_fit, m.flipped, m.cut), read_fit, 10)
    if name == "compact":
        return Kind(compact_fits(), (m.mutated_fit, m.mutated_fit, m.flipped, m.cut), read_fit, 6)
    if name == "hdf5":
        return Kind(fits(), (m.mutated_fit_bytes,), read_broken_fit, 1)
    if name == "report":
        return Kind(reports(), (sealed_report, sealed_report, m.mutated_json, m.flipped, m.cut), read_report, 20)
    if name == "study":
        return Kind(studies(), (rehashed, rehashed, m.mutated_json, m.flipped, m.cut), read_study, 250)
    if name == "joined":
        return Kind(joined(), (rejoined, rejoined, rejoined, m.mutated_release, m.cut), read_joined, 60)
    if name == "imported":
        return Kind(imported(), (m.mutated_release, m.mutated_release, m.flipped, m.cut), read_release, 60)
    if name == "protected":
        return Kind(protected(), (changed_table, changed_table, m.flipped, m.cut), read_protected_table, 40)
    if name == "names":
        return Kind(names(), (m.mutated_json, m.mutated_json, m.flipped, m.cut), read_names, 20)
    if name == "mechanisms":
        return Kind(mechanism_tables(), (changed_table, changed_table, m.flipped, m.cut), read_mechanisms, 20)
    return Kind(tables(), (changed_table, changed_table, m.flipped, m.cut), read_table, 170)


KINDS = (
    "release",
    "fit",
    "compact",
    "hdf5",
    "report",
    "study",
    "tables",
    "imported",
    "protected",
    "mechanisms",
    "joined",
    "names",
)
"""``hdf5`` are fits whose bytes were changed and sealed again, on which the HDF5 library may crash."""


def quietly(read: Callable[[Path], None], path: Path) -> None:
    """Read without printing."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        read(path)
