"""Where compiled kernels are kept between processes: a folder named after the contents of all sources with kernels.

Numba keeps what it compiled beside each source, and looks at that file's date alone: a kernel that calls a changed one
in another file would be run as it was. In a folder of these sources alone nothing stale is ever found, and nothing is
compiled twice: the tests, the processes that they start, and the examples of the site share it.
"""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ROOT / "build" / "numba"


def digest_of_kernels() -> str:
    """A digest of every source that Numba compiles, on its own or as part of a loop that is told to (``provides``)."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        content = path.read_bytes()
        if any(word in content for word in (b"numba", b"provides", b"kernels.compiled")):
            found.update(str(path.relative_to(ROOT)).encode() + b"\0" + content)
    return found.hexdigest()[:16]


def folder_of_kernels() -> Path:
    """The folder for the sources as they are now."""
    return FOLDERS / digest_of_kernels()
