"""The page's noise against the package's: the same thresholds, the same noise from the same bytes."""

import base64
import random
import re
from fractions import Fraction

import pytest

from countveil.privacy import _survival, noise
from countveil.study.page import tables
from tests.study.page.scripts import HERE, node

RATES = [
    Fraction(1, 10),
    Fraction(1, 2),
    Fraction(3),
    Fraction(30),
    Fraction(1000),
    Fraction(1, 3000),
    Fraction(1, 2**40),
]
RATES += [Fraction(10**39 + 7, 3 * 10**39 + 1)]


def told(rate):
    return {"num": str(rate.numerator), "den": str(rate.denominator)}


READ = "const rate = ({ num, den }) => ({ num: BigInt(num), den: BigInt(den) });"


def test_thresholds_are_those_of_the_package():
    cases = [(rate, bits) for rate in RATES for bits in (63, 127)]
    code = (
        READ
        + """
      return given.map(([r, bits]) => [
        magnitudeFloors(rate(r), 40, BigInt(bits)), geometricFloors(rate(r), 40, BigInt(bits)),
        digitFloors(rate(r), 40, BigInt(bits))]);"""
    )
    found = node(code, [(told(rate), bits) for rate, bits in cases])
    for (rate, bits), got in zip(cases, found, strict=True):
        wanted = [
            _survival.magnitude(rate, 40, bits),
            _survival.geometric(rate, 40, bits),
            _survival.digit(rate, 40, bits),
        ]
        assert [[int(x) for x in floors] for floors in got] == wanted, (rate, bits)


def test_the_table_in_the_page_is_the_table_that_the_page_would_compute():
    rates = RATES[:6]
    code = (
        READ
        + """
      return given.map(([r, text]) => {
        const written = thresholds(text), own = new Sampler(rate(r)).head.ascending;
        return [written.length, written.length === own.length && written.every((x, i) => x === own[i])];
      });"""
    )
    found = node(code, [(told(rate), tables.thresholds(rate)) for rate in rates])
    assert found == [[noise.Sampler(rate).head.size, True] for rate in rates]


def drawn(rate, size, content, entries=8192, base=4096):
    """The noise of both sides from the same bytes."""
    place = 0

    def entropy(count):
        nonlocal place
        place += count
        assert place <= len(content)
        return content[place - count : place]

    own = noise.Sampler(rate, entries, base).draw(size, entropy)
    code = (
        READ
        + """
      const sampler = new Sampler(rate(given.rate), undefined, given.entries, given.base);
      return sampler.draw(given.size, stream(given.bytes));"""
    )
    given = {"rate": told(rate), "size": size, "entries": entries, "base": base}
    got = node(code, given | {"bytes": base64.b64encode(content).decode()})
    return own, [int(x) for x in got], place


@pytest.mark.long
@pytest.mark.parametrize("rate", RATES, ids=str)
def test_the_same_bytes_give_the_same_noise(rate):
    content = random.Random(7).randbytes(8 * 400_000)
    own, page, _ = drawn(rate, 70_000, content)
    assert page == own


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 50), Fraction(1, 2)], ids=str)
def test_the_tail_takes_the_same_bytes(rate):
    content = random.Random(8).randbytes(8 * 100_000)
    own, page, used = drawn(rate, 5000, content, entries=5, base=3)
    assert used > 8 * 6000
    assert page == own


def test_a_tie_is_settled_by_the_same_bits():
    rate = Fraction(1, 10)
    table = noise.Sampler(rate).head
    generator = random.Random(9)
    words = [table.ascending[generator.randrange(table.size)] for _ in range(300)]
    content = b"".join(word.to_bytes(8, "little") for word in words) + generator.randbytes(8 * 400)
    longer = _survival.magnitude(rate, table.size, 127)
    again = [longer[table.size - 1 - table.ascending.index(words[0])] & (2**64 - 1)]
    tied_twice = content[:2400] + again[0].to_bytes(8, "little") + content[2400:]
    for bits in (content, tied_twice):
        own, page, used = drawn(rate, 300, bits)
        assert used >= 8 * 600
        assert page == own


def test_a_cut_table_is_refused():
    code = (
        READ
        + """
      try { new Sampler(rate(given.rate), thresholds(given.text).slice(1)); } catch (error) { return error.message; }"""
    )
    given = {"rate": told(Fraction(1)), "text": tables.thresholds(Fraction(1))}
    assert node(code, given) == "the noise table must be whole"


def test_no_script_has_another_source_of_chance():
    everything = "".join(path.read_text() for path in HERE.glob("*.js"))
    assert "Math.random" not in everything
    assert len(re.findall(r"crypto\.", everything)) == everything.count("crypto.getRandomValues") == 1
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|eval\(|document\.write|window\.|globalThis", everything)
