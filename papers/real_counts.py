"""Enron's counts from a folder that the user names."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from countveil.data.io import read_counts
from papers import maildir
from papers.bench import Bench

NETWORK = ("enron_network/enron161.npz", "enron161.npz", "enron_network.mtx", "enron_network.csv")
TEXT_LARGE = ("enron_text/enron_ham_10000x10000.npz", "docword.enron.txt.gz", "docword.enron.txt", "enron_text.mtx")
TEXT_SMALL = ("enron_text/enron_ham_1000x1400.npz", *TEXT_LARGE)
VOCABULARY = {"docword.enron.txt.gz": "vocab.enron.txt", "docword.enron.txt": "vocab.enron.txt"}


def network(bench: Bench) -> np.ndarray:
    """(n, n) e-mails from row to column, nothing on the diagonal.

    Looked for in the bench's data: enron_network/enron161.npz (an array Y), enron_network.mtx or .csv (any form of
    ``read_counts``), raw mail folders.

    Raises:
        FileNotFoundError: no data, or none of them is there.
        ValueError: a matrix that is not square or not of counts, or mail folders without enough mails.
    """
    folder = _folder(bench, "Enron's network")
    path = _first(folder, NETWORK)
    if path is None:
        return maildir.network(_mails(folder, NETWORK), bench)
    counts = _whole(_array(path, "Y") if path.suffix == ".npz" else read_counts(path).values, path)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"{path} must be square, one row and one column per actor, got {counts.shape}")
    np.fill_diagonal(counts, 0)
    return counts


def _array(path: Path, name: str) -> Any:
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            return file[name]
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile):  # TypeError: a bare array
        raise ValueError(
            f"{path} must be an .npz file with an array {name!r} of counts, got no such array: "
            f"numpy.savez(path, {name}=counts) writes one"
        ) from None


def _whole(values: Any, path: Path) -> np.ndarray:
    found = np.asarray(values.toarray() if sp.issparse(values) else values)
    if found.dtype.kind not in "iuf":
        raise ValueError(f"{path} must hold whole numbers, 0 or more, got values of type {found.dtype}")
    right = (found >= 0) & (found < 2**62) & (np.floor(found) == found)
    if not right.all():
        raise ValueError(f"{path} must hold whole numbers, 0 or more, got {found[~right].flat[0]}")
    return found.astype(np.int64)


def texts(bench: Bench, names: tuple[str, ...], shape: tuple[int, int]) -> sp.csr_array:
    """Documents by words, sparse: the longest documents and the most frequent words, at most ``shape`` of them.

    Looked for in the bench's data: the names, in order (UCI bag of words, with its vocabulary to check it by if that
    is there; MatrixMarket; .npz), then raw mail folders.

    Raises:
        FileNotFoundError: no data, or none of them is there.
        ValueError: a file that cannot be read, or mail folders without enough mails.
    """
    folder = _folder(bench, "Enron's texts")
    path = _first(folder, names)
    if path is None:
        counts = maildir.texts(_mails(folder, names), bench)
    else:
        words = folder / VOCABULARY.get(path.name, "")
        counts = sp.csr_array(read_counts(path, vocabulary=words if words.is_file() else None).values)
    counts = counts.astype(np.int64)
    chosen = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[: shape[1]])
    counts = sp.csr_array(counts[:, chosen])
    documents = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[: shape[0]])
    return sp.csr_array(counts[documents])


def _folder(bench: Bench, needs: str) -> Path:
    if bench.data is None:
        raise FileNotFoundError(f"{bench.name} needs {needs}: pass its folder with --data")
    return bench.data


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _mails(folder: Path, names: tuple[str, ...]) -> Path:
    found = maildir.find(folder)
    if found is None:
        raise FileNotFoundError(
            f"--data must be a folder with {', '.join(names)} or mail folders (maildir/OWNER/FOLDER/MAIL), got {folder}"
        )
    return found
