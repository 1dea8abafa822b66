import email
import time

import numpy as np
import pytest

from papers import mails
from papers.mails import Mail, Texts, read_mail
from tests.papers.mailbox import raw


def read(tmp_path, data):
    (tmp_path / "mail").write_bytes(data)
    return read_mail(tmp_path / "mail")


def test_a_plain_mail(tmp_path):
    mail = read(tmp_path, raw("Ann <Ann@X.com>", "bob@x.com,\n\t'cyd@x.com'", Cc="bob@x.com", Bcc="Dee <d@x.com>"))
    assert mail.sender == "ann@x.com"
    assert mail.receivers == {"bob@x.com", "cyd@x.com", "d@x.com"}
    assert mail.text == "hello there"


def test_a_mail_to_nobody_is_one_all_the_same(tmp_path):
    assert read(tmp_path, raw(to=None)).receivers == frozenset()


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe" * 50, b"no header\nat all", raw(sender=None), raw(sender="?")])
def test_what_is_no_mail_is_none(tmp_path, data):
    assert read(tmp_path, data) is None


def test_a_mail_that_the_parser_fails_on_is_none(tmp_path, monkeypatch):
    def fails(data):
        raise AttributeError("a bug on damaged input")

    monkeypatch.setattr(email, "message_from_bytes", fails)
    assert read(tmp_path, raw()) is None
    assert read_mail(tmp_path / "not there") is None


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("iso-8859-1", "caf\xe9".encode("latin-1"), "café"),
        ("utf-8", "naïve".encode(), "naïve"),
        ("utf-8", b"caf\xe9 noir", "caf� noir"),
        ("x-nothing-known", "caf\xe9".encode("latin-1"), "café"),
        (None, "über".encode(), "über"),
    ],
)
def test_characters(tmp_path, charset, body, text):
    kind = None if charset is None else f"text/plain; charset={charset}"
    assert read(tmp_path, raw(text="", Content_Type=kind) + body).text == text


def test_encoded_bodies_and_parts(tmp_path):
    assert read(tmp_path, raw(text="aGVsbG8=", Content_Transfer_Encoding="base64")).text == "hello"
    assert read(tmp_path, raw(text="a=3Db", Content_Transfer_Encoding="quoted-printable")).text == "a=b"
    parts = (
        "--p\nContent-Type: text/plain\n\nbody\n--p\nContent-Type: text/html\n\n<b>page</b>\n"
        "--p\nContent-Type: text/plain\nContent-Disposition: attachment\n\nattached\n--p--\n"
    )
    assert read(tmp_path, raw(text=parts, Content_Type="multipart/mixed; boundary=p")).text == "body"


def test_copies_have_one_digest_and_other_mails_another(tmp_path):
    first = read(tmp_path, raw()).digest
    assert read(tmp_path, raw(Message_ID="<2@x>", date="Mon, 14 May 2001 23:39:00 +0000")).digest == first
    assert read(tmp_path, raw(text="hello  there\n", Bcc="dee@x.com")).digest == first
    others = [raw(text="hello"), raw("cyd@x.com"), raw(Subject="some"), raw(date="once"), raw(date=None)]
    assert len({first, *(read(tmp_path, other).digest for other in others)}) == 6


@pytest.mark.parametrize("zone", [" -0000", ""])
def test_a_mail_without_a_time_zone_is_the_same_on_every_machine(tmp_path, monkeypatch, zone):
    data, digests = (
        raw(date=f"Mon, 14 May 2001 16:39:00{zone}"),
        {read(tmp_path, raw(date="Mon, 14 May 2001 16:39:00 +0000")).digest},
    )
    try:
        for place in ("UTC", "EST+5"):
            monkeypatch.setenv("TZ", place)
            time.tzset()
            digests.add(read(tmp_path, data).digest)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert len(digests) == 1


def mail(text, number):
    return Mail("a@x", frozenset(), text, number.to_bytes(16))


def test_texts_are_those_of_the_smallest_digests_that_are_long_enough():
    texts = Texts(2, 3)
    for number, text in ((9, "one two ten"), (3, "One one TWO a 5 x7"), (5, "six two six"), (1, "too short")):
        texts.add(mail(text, number))
    np.testing.assert_array_equal(texts.counts().toarray(), [[2, 0, 1], [0, 2, 1]])  # one, six, two


def test_no_text_at_all():
    assert Texts(2, 3).counts().shape == (0, 0)


def test_words_have_two_letters_or_more_and_no_digit():
    assert mails.re.findall(mails.WORD, "I e-mail x2 ab_c Über 2001 no.") == ["mail", "Über", "no"]
