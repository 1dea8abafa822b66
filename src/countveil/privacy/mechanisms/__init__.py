"""Mechanisms: what was done to every count before anybody but its owner saw it.

A mechanism is a frozen value with a name, a version and exact parameters. It says in plain words what it
protects, and files state it in JSON: {"name": ..., "version": ..., "parameters": {...}}, numbers as reduced
fractions in text. It needs the standard library alone.

To add a mechanism, write one file with a class and add one line to the table below. Releases, their files and their
descriptions then take it as they take the others.
"""

from countveil.privacy.mechanisms.base import MECHANISMS, Mechanism, from_json
from countveil.privacy.mechanisms.two_sided_geometric import TwoSidedGeometric

__all__ = ["MECHANISMS", "Mechanism", "TwoSidedGeometric", "from_json"]

for _kind in (TwoSidedGeometric,):
    MECHANISMS[_kind.name] = _kind
