"""The page's counting against the package's: the same words of any text, the same counts of any rows."""

import hashlib
import json
import random
import sys
import unicodedata
from pathlib import Path

import pytest

from countveil.privacy import counting
from countveil.privacy.errors import RefusedError
from countveil.study.page import tables
from tests.study.page.scripts import node

pytestmark = pytest.mark.long

PIECES = [
    *"aAbBzZß0129 \t\n.,;-_'’‘\"",
    *"ΣσςΑΒ·İıIiŞǅǆﬀﬁªº²½Ⅷⅷ①々〆ー",
    *"\u0300\u0301\u0323\u0345\u0307\u030a\u0327\u093c\u0903\u20dd\ufe0f\u200d\u200c\u00ad\u2060\ufeff",
    *"가각각ᅌ한글Åé\u212b\u2126\u1e9b\u1e9e\u0344\u0958\u2adc\ufb1d\ufb2c\u0f73\u0f75",
    *"ǰΐΰẖⱥȺꭰᏸᲀꙊ𐐀𐐨𞤀𞤢𝒜𝟘𝅗𝅥🎉👩🇩",
    *"\u1c89\ua7cb\ua7dc\u0897\u1add\U0001e4d0\U00010d50\U00011f00\U000105c9\U00016d68\u0378\U0010fffd\ue000",
    "\u1100\u1161\u11a8",
    "q\u0307\u0323",
    "''",
    "'''",
    "o'clock",
    "ΟΔΟΣ",
    "DON’T",
    "\r\n",
    "\x85",
    "\u2028",
]


def texts(count, seed):
    generator = random.Random(seed)
    for _ in range(count):
        yield "".join(generator.choices(PIECES, k=generator.randrange(1, 24)))
    for _ in range(count):
        characters = (chr(generator.randrange(0x20, 0x3000)) for _ in range(30))
        yield "".join(characters)
    for _ in range(count):
        codes = (generator.randrange(0x110000) for _ in range(30))
        yield "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


SPLIT = "const words = new Words(given.tables); return given.texts.map((text) => [...words.split(text)]);"


def test_words_of_odd_texts():
    asked = list(texts(3000, 1))
    found = node(SPLIT, {"tables": tables.unicode(), "texts": asked})
    wrong = [(text, got) for text, got in zip(asked, found, strict=True) if got != list(counting.words(text))]
    assert not wrong, ascii(wrong[:3])
    assert sum(map(len, found)) > 10_000


def test_words_where_a_long_text_is_cut():
    generator = random.Random(6)
    separators = [" ", "\n", ".", "'"]
    asked = []
    for _ in range(6):
        words = ("".join(generator.choices(PIECES, k=5)) + generator.choice(separators) for _ in range(40_000))
        asked.append("".join(words))
    asked.append("Σ\u0301'a" * 50_000 + " b")
    found = node(SPLIT, {"tables": tables.unicode(), "texts": asked})
    for text, got in zip(asked, found, strict=True):
        assert got == list(counting.words(text))


def around(code):
    c = chr(code)
    return f"a{c}b {c}Σ A{c}Σ AΣ{c} AΣ{c}B e{c}\u0301\u0323 {c}\u0301"


def test_words_with_every_character():
    """Every code point of the first two planes and of the tags, one in 13 of the others."""
    codes = [c for c in range(0x20000) if not 0xD800 <= c < 0xE000]
    codes += [*range(0xE0000, 0xE0200), *range(0x20000, sys.maxunicode + 1, 13)]
    code = """
      const words = new Words(given.tables), hash = require("crypto").createHash;
      const around = (code) => { const c = String.fromCodePoint(code);
        return `a${c}b ${c}\u03a3 A${c}\u03a3 A\u03a3${c} A\u03a3${c}B e${c}\u0301\u0323 ${c}\u0301`; };
      return given.blocks.map((block) => {
        const sum = hash("sha256");
        for (const code of block) sum.update([...words.split(around(code))].join(" ") + "\\n");
        return sum.digest("hex");
      });"""
    blocks = [codes[i : i + 512] for i in range(0, len(codes), 512)]
    found = node(code, {"tables": tables.unicode(), "blocks": blocks})
    for block, got in zip(blocks, found, strict=True):
        lines = "".join(" ".join(counting.words(around(c))) + "\n" for c in block)
        assert hashlib.sha256(lines.encode()).hexdigest() == got, f"between {block[0]:x} and {block[-1]:x}"


def test_a_character_that_only_the_browser_knows_separates():
    """With the tables of an older Unicode than this Python's, which a page may well have."""
    old = unicodedata.ucd_3_2_0
    older = tables.unicode() | {
        "kept": tables.runs(lambda c: c.isalnum() and old.category(c) != "Cn"),
        "unknown": tables.runs(lambda c: old.category(c) == "Cn"),
    }
    later = next(chr(c) for c in range(0x1C80, 0x1C90) if chr(c).isalnum())
    assert node(SPLIT, {"tables": older, "texts": [f"a{later}b"]}) == [["a", "b"]]
    assert list(counting.words(f"a{later}b")) != ["a", "b"]


def test_half_characters_are_refused():
    code = "try { [...new Words(given).split('a\\ud800b')]; } catch (error) { return error.key; }"
    assert node(code, tables.unicode()) == "not_text"


def test_counts_of_a_text():
    labels = ("party", "constructor", "__proto__", "don't", "straße", "ὀδός")
    text = "Party constructor PARTY don’t STRASSE Straße ὈΔΌΣ __proto__ other Other third"
    labels = tuple(label for label in labels if "_" not in label)
    own = counting.count_text(text, labels)
    code = "const found = countText(given.text, given.labels, new Words(given.tables)); return found;"
    got = node(code, {"text": text, "labels": labels, "tables": tables.unicode()})
    assert [int(x) for x in got["values"]] == own.values == [2, 1, 1, 1, 1]
    assert (int(got["outside"]), got["kinds"]) == (own.outside, own.outside_kinds)


AXES = (("Ann", "Bob, jr", 'C"c'), ("Mon", "Tue"))
ROWS = [
    "receiver,day,count\nAnn,Mon,3\n",
    'Ann,Mon,3\r\n"Bob, jr",Tue,4\r"C""c", Mon ,5\n\nAnn,Mon,10',
    "\ufeffAnn,Mon,4611686018427387904\n",
    "Ann,Mon,4611686018427387904\nAnn,Mon,1\n",
    "Ann,Mon,4611686018427387905\n",
    "Ann,Mon,-1\n",
    "Ann,Mon,1.5\n",
    "Ann,Mon\n",
    "Ann,Mon,x\nAnn,Mon,1\n",
    "\nAnn,Mon,x\nAnn,Mon,1\n",
    "Ann,Mon,1x\n",
    "a,b,c2\nAnn,Mon,1\n",
    "a,b,½\nAnn,Mon,1\n",
    "Ann,Mon,½\nAnn,Mon,1\n",
    "Ann,Mon,²\nAnn,Mon,1\n",
    "a,b,1 000\nAnn,Mon,1\n",
    "a,b,1.5e3\nAnn,Mon,1\n",
    "a,b,٣\nAnn,Mon,1\n",
    "a,b,nan\nAnn,Mon,1\n",
    "a,b,1e\nAnn,Mon,1\n",
    "a,b,+.5\nAnn,Mon,1\n",
    "a,b,.\nAnn,Mon,1\n",
    'Ann,Mon,"1',
    '"Ann"x,Mon,1',
    'A"n"n,Mon,1',
    "Zoe,Mon,7\nZoe,Mon,1\nAnn,Wed,2\n",
    "Ann,Mon,\x85 2\x1f\n",
    "Ann,Mon,٣\n",
    "Ann,Mon,\n",
    "",
    "\n\n",
    '""\n',
    '"Ann\nAnn",Mon,1\n',
    "Ann,Mon,00000000000000000007\n",
    f"{'𝒜' * 131072},Mon,1\n",
    f"{'𝒜' * 131073},Mon,1\n",
    f'Ann,Mon,1\n"{"a" * 131073}",Mon,1\n',
]

COUNTED = """return given.rows.map((text) => {
  try { const f = countCounts(text, given.axes); return [f.values, f.outside, f.kinds]; } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return error.key; } });"""


@pytest.fixture(scope="module")
def rows_counted():
    return node(COUNTED, {"rows": ROWS, "axes": AXES})


@pytest.mark.parametrize("place", range(len(ROWS)))
def test_counts_of_rows(rows_counted, place):
    same(rows_counted[place], counting.count_csv, ROWS[place])


def same(got, own, text):
    """The same counts of both sides, or a refusal of both."""
    try:
        values, outside, kinds = own(text.encode(), AXES, "it")
    except RefusedError:
        assert isinstance(got, str)
        return
    assert isinstance(got, list), got
    assert [int(x) for x in got[0]] == values
    assert (int(got[1]), got[2]) == (outside, kinds)


JSONS = {
    '{"Ann": {"Mon": 3, "Tue": 4611686018427387904}, "Bob, jr": {"Tue": 9007199254740993}}': None,
    '\ufeff \n{"C\\"c":{"Mon":0,\t"Tue":-0},"\\u0041nn":{"\\u004don":5}}\r\n': None,
    "{}": None,
    '{"Ann": {}}': None,
    '{"Zoe": {"Mon": 7, "Sun": 1}, "Ann": {"Wed": 2}, "\\ud800": {"Mon": 1}, "__proto__": {"Mon": 4}}': None,
    '{"Ann": {" Mon": 1, "constructor": 2}}': None,
    '{"Ann": {"Mon": 4611686018427387905}}': "not_whole_cell",
    '{"Ann": {"Mon": -1}}': "not_whole_cell",
    '{"Ann": {"Mon": 1.0}}': "not_whole_cell",
    '{"Ann": {"Mon": 1e2}}': "not_whole_cell",
    '{"Ann": {"Mon": "3"}}': "not_whole_cell",
    '{"Ann": {"Mon": null}}': "not_whole_cell",
    '{"Ann": {"Mon": true}}': "not_whole_cell",
    '{"Ann": {"Mon": [3]}}': "not_whole_cell",
    '{"Ann": {"Mon": {"x": 3}}}': "not_whole_cell",
    '{"Ann": {"Mon": %s}}' % ("9" * 5000): "not_whole_cell",
    '{"Ann": 3}': "not_nested",
    '{"Ann": [3, 4]}': "not_nested",
    '{"Ann": ' * 3000 + "1" + "}" * 3000: "not_whole_cell",
    '{"Ann": {"Mon": 1, "Mon": 1}}': "label_twice",
    '{"Ann": {"Mon": 1}, "\\u0041nn": {"Tue": 1}}': "label_twice",
    '{"Ann": {"Mon": 1}': "not_json",
    '{"Ann": {"Mon": 007}}': "not_json",
    '{"Ann": {"Mon": NaN}}': "not_json",
    '{"Ann": {"Mon": 1,}}': "not_json",
    "{'Ann': {'Mon': 1}}": "not_json",
    '{"A\nnn": {"Mon": 1}}': "not_json",
    '{"Ann": {"Mon": 1}} x': "not_json",
}


def test_counts_of_json():
    for (text, key), got in zip(JSONS.items(), node(COUNTED, {"rows": [*JSONS], "axes": AXES}), strict=True):
        same(got, counting.count_json, text)
        assert (got if isinstance(got, str) else None) == key, text[:80]


def test_mutated_json_is_counted_or_refused_alike():
    generator, good = random.Random(8), next(iter(JSONS))
    asked = []
    for _ in range(3000):
        text = list(good)
        for _ in range(generator.randrange(1, 4)):
            place = generator.randrange(1, len(text))
            text[place : place + generator.randrange(3)] = generator.choice(
                ['"', "{", "}", ":", ",", "0", " ", "[", "a", ""]
            )
        asked.append("".join(text))
    taken = 0
    for text, got in zip(asked, node(COUNTED, {"rows": asked, "axes": AXES}), strict=True):
        same(got, counting.count_json, text)
        taken += isinstance(got, list)
    assert 200 < taken < 2800


def test_a_count_in_json_is_named_by_all_its_labels():
    texts = ['{"Ann": {"Mon": 1, "Tue": 1.5}}', '{"Ann": {"Tue": 1, "Tue": 1}}']
    code = """return given.texts.map((text) => {
      try { countJson(text, given.axes); } catch (error) { return error.values.label; } });"""
    assert node(code, {"texts": texts, "axes": AXES}) == ["Ann / Tue"] * 2


def test_mutated_rows_are_counted_or_refused_alike():
    generator, asked = random.Random(9), []
    parts = [
        "Ann",
        "Mon",
        "Tue",
        '"Bob, jr"',
        "Zoe",
        ",",
        ",",
        "\n",
        "\r\n",
        '"',
        "3",
        "c2",
        "½",
        "²",
        "1e3",
        "-",
        " ",
        "٣",
        "count",
    ]
    for _ in range(4000):
        rows = [f"{generator.choice(parts)},{generator.choice(parts)},{generator.choice(parts)}" for _ in range(2)]
        asked.append("\n".join([*rows, "Ann,Mon,4"]))
    for text, got in zip(asked, node(COUNTED, {"rows": asked, "axes": AXES}), strict=True):
        same(got, counting.count_csv, text)


FILES = json.loads((Path(__file__).parent / "cases" / "files.json").read_text())


def test_files_that_are_no_plain_text_are_told_by_their_first_bytes():
    signatures = [[start.decode("latin-1"), key] for start, key in counting.SIGNATURES]
    code = """return given.files.map((file) =>
      formatOf(Uint8Array.from(Buffer.from(file, "hex")), given.signatures) ?? null);"""
    found = node(code, {"files": [file["bytes"] for file in FILES.values()], "signatures": signatures})
    for (name, file), got in zip(FILES.items(), found, strict=True):
        assert got == (None if file["said"] == "not_text" else file["said"]), name
