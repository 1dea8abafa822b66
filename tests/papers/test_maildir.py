import os

import numpy as np
import pytest
import scipy.sparse as sp

from papers import maildir
from papers.bench import Bench
from papers.maildir import Rules
from tests.papers.mailbox import put, raw

RULES = Rules(10, 4, 2, 0.9, 2)


@pytest.fixture
def folder(tmp_path):
    """Three owners: ann sends bob two mails and herself and bob one, bob ann one; cyd got one and sent none."""
    root = tmp_path / "maildir"
    first = raw(to="bob@x.com, cyd@x.com", text="oil gas oil")
    put(
        root,
        **{
            "ann-a__sent__1.": first, "ann-a__all_documents__1.": first, "bob-b__inbox__1.": first,
            "ann-a__sent__2.": raw(text="gas price", Cc="bob@x.com"),
            "ann-a__work__Sent Items__3.": raw(to="ann@x.com, bob@x.com", text="oil price power"),
            "ann-a__sent__4.": raw("ann@home.org", text="from home"),
            "bob-b__Sent Items__1.": raw("bob@x.com", "ann@x.com, out@side.com", "power power"),
            "cyd-c__inbox__1.": raw("out@side.com", "cyd@x.com", "spam"),
        },
    )  # fmt: skip
    return root


def test_e_mails_between_owners(folder, tmp_path):
    found = maildir.network(folder, Bench("case", tmp_path / "fits"), RULES)
    np.testing.assert_array_equal(found, [[0, 3], [1, 0]])  # ann, bob


def test_actors_sent_a_mail_and_have_enough(folder, tmp_path):
    put(folder, **{"cyd-c__sent__1.": raw("cyd@x.com", "ann@x.com", "word")})
    np.testing.assert_array_equal(maildir.network(folder, Bench("case"), RULES), [[0, 3, 1], [1, 0, 0], [1, 0, 0]])
    assert len(maildir.network(folder, Bench("case"), RULES._replace(least_mails=3))) == 3  # cyd: 1 and 2
    assert len(maildir.network(folder, Bench("case"), RULES._replace(least_mails=4))) == 2
    with pytest.raises(ValueError, match=r"two owners or more .* at least 6, got 0"):
        maildir.network(folder, Bench("case"), RULES._replace(least_mails=6))


def test_words_of_e_mails(folder, tmp_path):
    """gas, home, oil, power, price, from: each mail once, at least two words; the four most frequent words."""
    found = maildir.texts(folder, Bench("case", tmp_path / "fits"), RULES)
    assert isinstance(found, sp.csr_array)
    assert found.dtype == np.int64
    rows = sorted(map(tuple, found.toarray().tolist()))  # columns: gas, oil, power, price
    assert rows == sorted([(1, 2, 0, 0), (1, 0, 0, 1), (0, 1, 1, 1), (0, 0, 2, 0), (0, 0, 0, 0)])


def test_words_in_too_many_documents_are_left_out(folder):
    few = maildir.texts(folder, Bench("case"), RULES._replace(document_frequency=0.4, words=9))
    assert few.shape == (5, 2)  # from and home; the others are in two of five
    with pytest.raises(ValueError, match=r"at least 2 words, and words that are in less than 1% of them, got 5 .* 0"):
        maildir.texts(folder, Bench("case"), RULES._replace(document_frequency=0.01))
    with pytest.raises(ValueError, match=r"at least 50 words, .* got 0 such e-mails"):
        maildir.texts(folder, Bench("case"))


@pytest.fixture
def parsed(monkeypatch):
    """How many files were parsed."""
    files, read = [], maildir.read_mail
    monkeypatch.setattr(maildir, "read_mail", lambda path: files.append(path) or read(path))
    return files


def test_a_second_run_does_not_parse(folder, tmp_path, parsed):
    first = maildir.texts(folder, Bench("topics-enron", tmp_path / "fits"), RULES)
    assert len(parsed) == 8
    again = maildir.texts(folder, Bench("topics-semisynthetic", tmp_path / "fits", seed=2), RULES)
    np.testing.assert_array_equal(first.toarray(), again.toarray())
    maildir.network(folder, Bench("links-enron", tmp_path / "fits"), RULES)
    assert len(parsed) == 8


@pytest.mark.parametrize("change", ["content", "time", "name", "more", "rules"])
def test_changed_mails_or_rules_are_counted_again(folder, tmp_path, parsed, change):
    bench, rules, path = Bench("case", tmp_path / "fits"), RULES, folder / "ann-a" / "sent" / "4."
    maildir.network(folder, bench, rules)
    if change == "content":
        path.write_bytes(path.read_bytes() + b"more")
    elif change == "time":
        os.utime(path, ns=(1, 1))
    elif change == "name":
        path.rename(path.with_name("5."))
    elif change == "more":
        put(folder, **{"bob-b__inbox__9.": raw(text="new")})
    else:
        rules = rules._replace(least_mails=1)
    maildir.network(folder, bench, rules)
    assert len(parsed) > 8


def test_nothing_but_counts_is_kept(folder, tmp_path):
    maildir.texts(folder, Bench("case", tmp_path / "fits"), RULES)
    (kept,) = (tmp_path / "fits").iterdir()
    with np.load(kept, allow_pickle=False) as file:
        said = "".join(str(file[name]) for name in file.files)
    assert not any(word in said for word in ("ann", "x.com", "oil", "power", "side"))


def test_files_that_are_no_mails_are_told_and_left_out(folder):
    put(folder, **{"bob-b__inbox__7.": b"\xff\x00", "bob-b__inbox__8.": b"", "bob-b__.hidden__1": b"x"})
    (folder / "bob-b" / "inbox" / "link").symlink_to(folder)
    with pytest.warns(UserWarning, match="2 of 10 files in .* are not readable e-mails"):
        found = maildir.network(folder, Bench("case"), RULES)
    np.testing.assert_array_equal(found, [[0, 3], [1, 0]])


def test_the_first_copy_is_that_of_the_first_name_in_whatever_order_a_disk_lists_them(folder, monkeypatch):
    put(folder, **{"ann-a__a__1.": raw(to="cyd@x.com", text="two copies"), "ann-a__b__1.": raw(text="two copies")})
    put(folder, **{"cyd-c__sent__1.": raw("cyd@x.com", "ann@x.com", "word")})
    scandir = os.scandir

    class Turned:
        def __init__(self, path):
            self.path = path

        def __enter__(self):
            with scandir(self.path) as entries:
                return iter(sorted(entries, key=lambda entry: entry.name, reverse=True))

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(maildir.os, "scandir", Turned)
    found = maildir.network(folder, Bench("case"), RULES)
    np.testing.assert_array_equal(found, [[0, 3, 2], [1, 0, 0], [1, 0, 0]])  # ann to cyd, and not to bob


def test_a_name_that_is_no_text_is_a_name(folder):
    path = os.fsencode(folder / "ann-a" / "sent")
    os.rename(path + b"/1.", path + b"/\xff.")
    np.testing.assert_array_equal(maildir.network(folder, Bench("case"), RULES), [[0, 3], [1, 0]])


def test_a_mail_beside_the_folders_has_no_owner(folder):
    (folder / "one.eml").write_bytes(raw("bob@x.com", "ann@x.com", "one more"))
    np.testing.assert_array_equal(maildir.network(folder, Bench("case"), RULES), [[0, 3], [2, 0]])


def test_folders_without_mails(tmp_path):
    put(tmp_path, ann__inbox__1=b"nothing")
    with pytest.raises(ValueError, match="must hold e-mails with a sender, got none in 1 files"):
        maildir.network(tmp_path, Bench("case"))


class Watcher:
    def __init__(self):
        self.total, self.labels = 0, []

    def begin(self, total):
        self.total = total

    def started(self, name):
        self.labels.append(name)

    def finished(self, name, seconds):
        assert name == self.labels[-1]


def test_progress_is_told_without_names(folder):
    watcher = Watcher()
    maildir.network(folder, Bench("case", watcher=watcher), RULES)
    assert watcher.total == 3
    assert watcher.labels[0] == "mail folders 1 of 3, 5 files"


@pytest.mark.parametrize("below", ["maildir", "."])
def test_where_mail_folders_are_looked_for(folder, tmp_path, below):
    assert maildir.find(tmp_path if below == "maildir" else folder) == folder
    assert maildir.find(folder / "ann-a") is None
