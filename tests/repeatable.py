"""The operating system's random bits, replaced while tests run: a failure comes back when its test is run again.

Noise that protects anybody cannot be seeded, and nothing in the library could do this.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from countveil.privacy import gaussian_noise, noise, rounded


def bits_of(name: str) -> random.Random:
    """Generator of a name, which may hold surrogates: tests of text have them in theirs."""
    return random.Random(name.encode("utf-8", "surrogatepass"))


class Bits:
    """Bytes that depend on a name and on what was drawn since it was given."""

    def __init__(self) -> None:
        self._bits = bits_of("")

    def named(self, name: str) -> None:
        self._bits = bits_of(name)

    @contextmanager
    def kept(self, name: str) -> Iterator[None]:
        """Bits of another name, then those of before."""
        before, self._bits = self._bits, bits_of(name)
        try:
            yield
        finally:
            self._bits = before

    def __call__(self, size: int) -> bytes:
        return self._bits.randbytes(size)


BITS = Bits()


def noise_repeats() -> None:
    for module in (noise, gaussian_noise, rounded):
        module.os = SimpleNamespace(urandom=BITS)
