"""Hostile studies and inputs for the page, each made from a number, so that one that failed can be kept."""

import random
from html.parser import HTMLParser

from countveil.privacy import PrivacyLevel, study
from countveil.privacy._covariates import Covariate
from countveil.privacy.errors import RefusedError

HOSTILE = [
    *("<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "</textarea>", "<!--", "]]>", "&lt;b&gt;"),
    *(
        "{amount}",
        "{x}",
        "{{data}}",
        "$&",
        "$1",
        "%s",
        "\\u0041",
        "constructor",
        "__proto__",
        "toString",
        "hasOwnProperty",
    ),
    *(
        "javascript:alert(1)",
        "'; DROP TABLE",
        "=1+1",
        '"',
        "'",
        "''",
        ",",
        "a,b",
        "\\",
        "/",
        "null",
        "NaN",
        "-0",
        "1e5",
    ),
    *(
        "ΟΔΟΣ",
        "İ",
        "ẞ",
        "ﬁ",
        "👩\u200d👩\u200d👧",
        "e\u0301\u0323",
        "각",
        "ǆ",
        "𝒜",
        "٣",
        "½",
        "party",
        "PARTY",
        "don’t",
    ),
]
UNSEEN = [
    *("\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\x00", "\x01", "\x07", "\x1b[2J", "\x7f", "\x85", "\xa0"),
    *("\ud800", "\udfff", "\ufffe", "\uffff", "\U0010ffff", "\u2028", "\u2029", "\r", "\n", "\r\n", "\t", " ", "  "),
]
ROWS = ["party,3\n", "{l},{n}\n", '"{l}",{n}\n', "{l},{l},{n}\n", "label,count\n", "{l}\n", ",,\n", '"\n', "{l},{n}"]
JSONS = [
    '{{"{l}": {n}}}',
    '{{"{l}": {{"{l}": {n}}}}}',
    '{{"{l}": {n}, "{l}": {n}}}',
    '{{"{l}": ',
    "{{}}",
    "[{n}]",
    '{{"{l}"',
]
NUMBERS = [
    "0",
    "1",
    "7",
    "4611686018427387904",
    "4611686018427387905",
    "-1",
    "1.5",
    "1e3",
    "",
    "x",
    "9" * 400,
    "٣",
    "007",
]
QUIET = PrivacyLevel(1000, 1)
LEVELS = [PrivacyLevel(1, 10), PrivacyLevel("0.02", 1), QUIET, PrivacyLevel("0.4", "0.1"), PrivacyLevel(21, 1000)]
QUIET_RHO = PrivacyLevel.zcdp(200)
LEVELS_OF_RHO = [QUIET_RHO, PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp("1e-20")]
NAMES = ["constructor", "participant", "reports", "covariates", "toString", "level", "__proto__"[2:]]


def text(generator, pieces=24):
    """Pieces of odd text, some of them very long."""
    chosen = generator.choices([*HOSTILE, *UNSEEN], k=generator.randrange(pieces))
    if generator.random() < 0.3:
        chosen += [chr(generator.randrange(0x110000)) for _ in range(8)]
    if generator.random() < 0.01:
        chosen += [generator.choice(chosen or ["x"])] * 20_000
    return generator.choice(["", " ", "\n"]).join(chosen)


def studied(number):
    """A study with hostile texts, or None where what a study may say is not that."""
    generator = random.Random(f"study {number}")
    words = number % 2 == 0
    labels = dict.fromkeys(generator.choices(HOSTILE, k=6))
    if words:
        labels = dict.fromkeys(["party", "don't", "constructor", "ὀδός", *("straße", "null", "3", "각")[: number % 5]])
    axes = [("word" if words else generator.choice(HOSTILE), [*labels])]
    if not words and generator.random() < 0.5:
        axes.append((generator.choice(HOSTILE), ["Mon", "Tue", generator.choice(HOSTILE)]))
    said = [f"{generator.choice(HOSTILE)} {generator.choice(HOSTILE)}" for _ in range(3)]
    of_rho, levels = (number % 3 == 1, [QUIET, *generator.sample([level for level in LEVELS if level != QUIET], 2)])
    try:
        return study.new(
            *said,
            LEVELS_OF_RHO if of_rho else levels,
            axes,
            kind=study.WORDS if words else study.CATEGORIES,
            truncated=generator.random() < 0.5 and not of_rho,
            address=generator.choice([None, "https://study.example.org/reports"]),
            covariates=covariates(number),
        )
    except RefusedError:
        return None


def covariates(number):
    """What two of three studies ask besides, by names that mean something elsewhere."""
    generator = random.Random(f"covariates {number}")
    names = generator.sample(NAMES, number % 3)
    values = [*dict.fromkeys(generator.choices(HOSTILE, k=3)), "another"]
    ends = [(None, None), ("-1", "7.5"), ("0", None), (None, "100")]
    kinds = [Covariate("", tuple(values)), Covariate("", (), *generator.choice(ends))]
    return [kind._replace(name=name) for name, kind in zip(names, kinds, strict=False)]


def stated(number, of):
    """What a person enters for the covariates, mostly what is allowed."""
    generator = random.Random(f"stated {number}")
    odd = [*NUMBERS, "+5.0", "-0", " 3 ", "1,5", text(generator, 3)]
    return [
        generator.choice(odd) if generator.random() < 0.1 else generator.choice(each.values or ["1", "007.0"])
        for each in of.covariates
    ]


def asked(number, of):
    """What a person enters into the page of a study."""
    generator = random.Random(f"input {number}")
    labels = [label for _, labels in of.axes for label in labels] + HOSTILE[:6]

    def filled(pieces):
        return "".join(
            piece.format(l=generator.choice(labels), n=generator.choice(NUMBERS))
            for piece in generator.choices(pieces, k=generator.randrange(1, 5))
        )

    kind = generator.randrange(4)
    record = text(generator) if kind < 2 else filled(ROWS if kind == 2 else JSONS)
    if generator.random() < 0.3:
        place = generator.randrange(len(record) + 1)
        record = record[:place] + generator.choice([*UNSEEN, *HOSTILE]) + record[place:]
    file = None
    if generator.random() < 0.2:
        start = generator.choice(
            [b"", b"", b"PK\x03\x04", b"%PDF-", b"\xef\xbb\xbf", b"\xff\xfe", b"{\\rtf", b"\xd0\xcf\x11\xe0"]
        )
        content = start + record.encode(generator.choice(["utf-8", "utf-16", "latin-1"]), "replace")
        file = {
            "name": generator.choice(["a.txt", "a.csv", "a.JSON", "<b>.csv", text(generator, 3)]),
            "bytes": content.hex(),
        }
    return {
        "level": generator.randrange(3),
        "form": generator.choice([0, 1, 1, 2]) if kind >= 2 else generator.choice([0, 0, 0, 1, 2]),
        "record": record,
        "file": file,
        "cells": generator.choices(
            [*NUMBERS[:4], *NUMBERS[:4], *NUMBERS, text(generator, 3)], k=generator.randrange(1, 8)
        ),
        "name": generator.choice(["me", f"record {number}", f"record {number}", text(generator, 6)]),
        "limit": [generator.choice(["5000", *NUMBERS, text(generator, 3)]), generator.choice(["1", *NUMBERS])],
        "stated": stated(number, of),
        "limit_of_rho": random.Random(f"limit {number}").random() < (0.95 if of.of_rho else 0.05),
        "ends": generator.choice([*[None] * 18, "download", "send"]),
    }


class _Tree(HTMLParser):
    """A page as [tag, attributes, children]."""

    def __init__(self):
        super().__init__()
        self.root = ["root", {}, []]
        self.open = [self.root]
        self.script = ""

    def handle_starttag(self, tag, attrs):
        element = [tag, {name: value or "" for name, value in attrs}, []]
        self.open[-1][2].append(element)
        if tag not in ("meta", "input", "br"):
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        self.open[-1][2].append(data)


def tree(html):
    """The elements of a page, and its script."""
    parser = _Tree()
    parser.feed(html)
    parser.close()
    assert parser.open == [parser.root]
    return parser.root


def shape(node):
    """The tags and attributes of a page without its texts and values."""
    if isinstance(node, str):
        return None
    tag, attributes, children = node
    return [tag, sorted(attributes), [shape(child) for child in children if not isinstance(child, str)]]
