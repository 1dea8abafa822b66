"""The page's report file against the package's, byte for byte; and what it does with fractions."""

import hashlib
import hmac
import json
import random
from fractions import Fraction

from countveil.privacy import PrivacyLevel, noise, report, study
from countveil.privacy.exact import short
from countveil.study.page import tables, write
from tests.study.page.scripts import HERE, TWINS, node

LEVELS = [PrivacyLevel(1, 10), PrivacyLevel("0.5", "2.5")]


def planned(truncated):
    axes = [("word", ["surprise", "party", "ὁδός"])]
    return study.new("Überraschung", "To learn.", "a@b.org", LEVELS, axes, truncated=truncated)


def test_sha_256_and_hmac_at_every_length_around_a_block():
    generator = random.Random(3)
    messages = [generator.randbytes(n) for n in (*range(140), 5000)]
    code = """const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
      return given.map((m) => [hex(sha256(bytes(m))), hex(hmac(bytes(given[32]), bytes(m)))]);"""
    wanted = [[hashlib.sha256(m).hexdigest(), hmac.digest(messages[32], m, "sha256").hex()] for m in messages]
    assert node(code, [m.hex() for m in messages]) == wanted


def test_report_files_are_the_same_bytes():
    token = "0123456789abcdef" * 2
    for truncated in (True, False):
        under = planned(truncated)
        for place, level in enumerate(LEVELS):
            content = random.Random(place).randbytes(8 * 3)
            counts = [2**62, 0, 5]
            drawn = noise.Sampler(level.rate).draw(3, lambda size, content=content: content[:size])
            values = [count + tau for count, tau in zip(counts, drawn, strict=True)]
            if truncated:
                values = [max(value, 0) for value in values]
            own = report.encode(report.Report(token, level, values), under)
            code = """
              const level = given.level;
              const bytes = () => Uint8Array.from(Buffer.from(given.bytes, "hex"));
              const sampler = new Sampler(fraction(level.rate), thresholds(level.thresholds));
              const noisy = privatized(given.counts.map(BigInt), sampler, given.truncated, bytes);
              return encodeReport(given.fixed, given.numbers, given.token, noisy);"""
            given = {
                "level": tables.levels(under)[place],
                "numbers": {name: str(number) for name, number in level.numbers().items()},
                "bytes": content.hex(),
                "counts": [str(count) for count in counts],
                "truncated": truncated,
                "fixed": report.fixed(under),
                "token": token,
            }
            assert node(code, given).encode() == own
            assert report.decode(own, under, "it").values == values


def test_canonical_json_of_odd_text():
    value = {"b": ['é\u2028\x7f"\\\n\t\x00</script>', "🎉", True, -5], "a": {"é": 1}}
    own = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert node("return canonical(given);", value) == own


def test_fractions_are_shown_exactly_and_add_up():
    ledger = TWINS + (HERE / "ledger.js").read_text()
    generator = random.Random(5)
    pairs = [
        (Fraction(generator.randrange(1, 2000), generator.randrange(1, 900)), Fraction(generator.randrange(1, 99), 10))
        for _ in range(200)
    ]
    code = """return given.map(([a, b]) => [plus, times, over].map((f) => {
      const { num, den } = f(fraction(a), fraction(b)); return `${num}/${den}`; }).concat(shown(fraction(a))));"""
    found = node(code, [[str(a), str(b)] for a, b in pairs], ledger)
    for (a, b), got in zip(pairs, found, strict=True):
        assert [Fraction(x) for x in got[:3]] == [a + b, a * b, a / b]
        assert abs(float(Fraction(got[3])) - a) <= a * Fraction(1, 10**5)
        assert got[3] == short(a) or len(got[3]) < 12
    decimals = ["2", "0.50", "10", "1.25", "0", "-1", "x", "1e3", "", ".5", "0.000"]
    wanted = ["2", "1/2", "10", "5/4", *[None] * 7]
    assert node("return given.map(decimal);", decimals, ledger) == wanted


def test_every_part_is_in_the_page_as_it_was_tested():
    text = write.page(planned(True))
    for name in write.SCRIPTS:
        assert (HERE / name).read_text() in text
