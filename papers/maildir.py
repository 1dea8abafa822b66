"""Enron's raw mail folders, counted: words of e-mails, and e-mails between the owners of the folders.

A folder for each owner, in it their mail folders, in those one file per mail (the CMU distribution). Only
counts are kept: no text, word, name or address.
"""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from papers.bench import Arrays, Bench, Task
from papers.mails import Mail, Texts, read_mail

COUNTING = 2  # to be raised whenever the way of counting changes: kept counts of another are not used
SENT = "sent"  # in the name of a folder that holds what its owner wrote


class Rules(NamedTuple):
    """What the ICML paper counts: random e-mails of enough words, frequent words that are not everywhere, and
    actors who sent a mail and sent or received enough."""

    documents: int = 10_000
    words: int = 10_000
    least_tokens: int = 50
    document_frequency: float = 0.3
    least_mails: int = 100


class Listing(NamedTuple):
    """The files below a folder, and a name for what they were when they were listed."""

    files: dict[str, list[str]]  # of each owner, relative to the folder
    state: str


def find(folder: Path) -> Path | None:
    """The mail folders in a folder: its ``maildir``, or itself if an owner in it has an inbox or sent mails."""
    if (folder / "maildir").is_dir():
        return folder / "maildir"
    looks = any(path.is_dir() for kind in ("inbox", f"*{SENT}*") for path in folder.glob(f"*/{kind}"))
    return folder if looks else None


def texts(folder: Path, bench: Bench, rules: Rules = Rules()) -> sp.csr_array:  # noqa: B008
    """(D, V) words of e-mails, kept in the bench's folder.

    Raises:
        ValueError: no mail is long enough, or every word is in too many of them.
    """
    found = counted(folder, bench, rules)
    shape = tuple(found["words_shape"].tolist())
    if 0 in shape:
        raise ValueError(
            f"{folder} must hold e-mails of at least {rules.least_tokens} words, and words that are in less than "
            f"{rules.document_frequency:.0%} of them, got {shape[0]} such e-mails and {shape[1]} such words"
        )
    return sp.csr_array((found["words_data"], found["words_indices"], found["words_indptr"]), shape=shape)


def network(folder: Path, bench: Bench, rules: Rules = Rules()) -> np.ndarray:  # noqa: B008
    """(n, n) e-mails from row to column between owners, kept in the bench's folder.

    Raises:
        ValueError: fewer than two owners have enough mails.
    """
    found = counted(folder, bench, rules)["network"]
    if len(found) < 2:
        raise ValueError(
            f"{folder} must hold two owners or more who wrote an e-mail (in a folder named *{SENT}*) and wrote or got "
            f"at least {rules.least_mails}, got {len(found)}"
        )
    return found


def counted(folder: Path, bench: Bench, rules: Rules) -> Arrays:
    """Both counts, from the bench's folder if an earlier run left those of the same files there.

    The same are files of the same names, sizes and times of change. Warns of files that are not mails.

    Raises:
        ValueError: no mail with a sender.
    """
    listing = listed(folder)
    key = {"counting": COUNTING, "mails": listing.state, **rules._asdict()}
    task = Task(key, lambda: count(folder, listing, bench, rules))
    found = Bench("maildir", bench.folder, seed=0).results([task])[0]
    files, mails, left_out = (int(found[name]) for name in ("files", "mails", "left_out"))
    if mails == 0:
        raise ValueError(f"{folder} must hold e-mails with a sender, got none in {files} files")
    if left_out:
        warnings.warn(
            f"{left_out} of {files} files in {folder} are not readable e-mails with a sender, and were left out",
            stacklevel=2,
        )
    return found


def listed(folder: Path) -> Listing:
    """Every file below, in the order of their names; hidden ones and links are left out."""
    files: dict[str, list[str]] = {}
    state = hashlib.sha256()
    for entry in _files(folder):
        relative = os.path.relpath(entry.path, folder)
        facts = entry.stat(follow_symlinks=False)
        state.update(f"{relative}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode(errors="surrogateescape"))
        files.setdefault(Path(relative).parts[0], []).append(relative)
    return Listing(files, state.hexdigest())


def _files(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        ordered = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda e: e.name)
    for entry in ordered:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        elif entry.is_file(follow_symlinks=False):
            yield entry


def count(folder: Path, listing: Listing, bench: Bench, rules: Rules) -> dict[str, Any]:
    """Read every mail; one that is in several folders counts once, with the receivers of its first copy."""
    documents, links, known = Texts(rules.documents, rules.least_tokens), Links(), set()
    left_out = 0
    bench.announce(len(listing.files))
    for place, (_, files) in enumerate(listing.files.items(), start=1):
        with bench.watched(f"mail folders {place} of {len(listing.files)}, {len(files):,} files"):
            for relative in files:
                mail = read_mail(folder / relative)
                if mail is None:
                    left_out += 1
                    continue
                links.seen(relative, mail)
                if mail.digest not in known:
                    known.add(mail.digest)
                    links.add(mail)
                    documents.add(mail)
    words = frequent(documents.counts(), rules)
    return {
        "network": links.matrix(rules.least_mails),
        "words_data": words.data, "words_indices": words.indices, "words_indptr": words.indptr,
        "words_shape": np.array(words.shape), "mails": len(known), "left_out": left_out,
        "files": sum(map(len, listing.files.values())),
    }  # fmt: skip


class Links:
    """E-mails counted by sender and receiver, and which address an owner writes from."""

    def __init__(self) -> None:
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._sent: Counter[str] = Counter()
        self._received: Counter[str] = Counter()
        self._addresses: dict[str, Counter[str]] = {}

    def seen(self, relative: str, mail: Mail) -> None:
        """A file, a copy of another or not: in a folder of sent mails it shows its owner's address."""
        owner, *folders = Path(relative).parts[:-1] or ("",)  # a file beside the owners' folders has no owner
        if any(SENT in name.casefold() for name in folders):
            self._addresses.setdefault(owner, Counter())[mail.sender] += 1

    def add(self, mail: Mail) -> None:
        """An e-mail: one for each receiver but its sender."""
        self._sent[mail.sender] += 1
        for receiver in mail.receivers - {mail.sender}:
            self._received[receiver] += 1
            self._pairs[(mail.sender, receiver)] += 1

    def matrix(self, least: int) -> np.ndarray:
        """(n, n) from row to column, of owners who sent or received at least ``least``; nothing to oneself."""
        chosen = {max(found, key=lambda a: (found[a], a)) for found in self._addresses.values()}
        actors = sorted(a for a in chosen if self._sent[a] + self._received[a] >= least)
        place = {address: i for i, address in enumerate(actors)}
        found = np.zeros((len(actors), len(actors)), dtype=np.int64)
        for (sender, receiver), n in self._pairs.items():
            if sender in place and receiver in place:
                found[place[sender], place[receiver]] = n
        return found


def frequent(counts: sp.csr_array, rules: Rules) -> sp.csr_array:
    """The columns of the most frequent words among those that are not in too many documents."""
    within = np.asarray((counts > 0).sum(axis=0)).ravel() < rules.document_frequency * counts.shape[0]
    totals = np.asarray(counts.sum(axis=0)).ravel()
    order = np.argsort(-totals, kind="stable")
    return sp.csr_array(counts[:, np.sort(order[within[order]][: rules.words])])
