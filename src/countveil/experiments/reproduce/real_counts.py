"""Enron's counts from a folder that the user names."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from countveil.io import read_counts

NETWORK = ("enron_network/enron161.npz", "enron161.npz", "enron_network.mtx", "enron_network.csv")
TEXT_LARGE = (
    "enron_text/enron_ham_10000x10000.npz",
    "docword.enron.txt.gz",
    "docword.enron.txt",
    "enron_text.mtx",
)
TEXT_SMALL = ("enron_text/enron_ham_1000x1400.npz", *TEXT_LARGE[1:])


def network(folder: Path) -> np.ndarray:
    """(n, n) e-mails from row to column, nothing on the diagonal.

    Looked for: enron_network/enron161.npz (an array Y), or enron_network.mtx or .csv (any form of ``read_counts``).

    Raises:
        FileNotFoundError: none of them is in the folder.
        ValueError: a matrix that is not square.
    """
    path = _first(folder, NETWORK)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            counts = np.asarray(file["Y"], dtype=np.int64)
    else:
        values: Any = read_counts(path).values
        counts = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.int64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"{path} must be square, one row and one column an actor, got {counts.shape}")
    np.fill_diagonal(counts, 0)
    return counts


def texts(folder: Path, names: tuple[str, ...], shape: tuple[int, int]) -> sp.csr_array:
    """Documents by words, sparse: at most so many of the longest documents and of the most frequent words.

    Looked for: the names, in order; UCI bag of words (docword.enron.txt), MatrixMarket and .npz are read.

    Raises:
        FileNotFoundError: none of them is in the folder.
    """
    counts = sp.csr_array(read_counts(_first(folder, names)).values).astype(np.int64)
    words = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[: shape[1]])
    counts = sp.csr_array(counts[:, words])
    documents = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[: shape[0]])
    return sp.csr_array(counts[documents])


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"no counts in {folder}: looked for {', '.join(names)}")
