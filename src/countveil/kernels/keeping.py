"""Where compiled functions are kept: in Numba's folders, if nobody else can write there. Without one, nothing fails.

Numba takes the first of these: the folder that NUMBA_CACHE_DIR names, ``__pycache__`` beside the source, the user's
cache folder. By itself it raises an error where it can write to none of them, or where the disk is full. What it keeps
are pickles, which run as code when they are read: a folder that other users can write to is passed over.

Numba looks only at the date of a function's own file, and would run what it kept even after a function that this one
calls has changed in another file. So what is kept is valid only for the contents of all sources of kernels and laws. A
function that is compiled with Numba's own ``cache=True`` has no such check.

What is compiled for a law or noise from outside the library is not kept. Numba pickles the class into the index of each
loop, and a process that cannot import it could not read the index. Nor would Numba notice changes to its functions.
"""

import functools
import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from numba import types
from numba.core import caching

from countveil.kernels import linking

told = False  # whether the user was told that functions are not kept
SOURCES = "kernels/**/*.py", "laws/**/*.py", "bridges/**/*.py", "distributions.py"  # of what compiled ones call


@functools.cache
def stamp_of_sources() -> str:
    """A digest of the names and contents of the sources with functions that others call."""
    here, found = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(path for places in SOURCES for path in here.glob(places)):
        with suppress(OSError):  # an editor's lock, such as a link that leads nowhere
            content = path.read_bytes()
            found.update(f"{path.relative_to(here).as_posix()} {len(content)} ".encode() + content)
    return found.hexdigest()


class Stamped:
    """A place for a cache, whose contents are stale as soon as any of these sources has changed."""

    def get_source_stamp(self) -> Any:
        """That of the function's own source, and of all that it may call."""
        own = super().get_source_stamp()  # type: ignore[misc]
        return own, stamp_of_sources()


class Private:
    """A place for a cache, which is refused where other users could put files into it."""

    get_cache_path: Callable[[], str]

    def ensure_cache_path(self) -> None:
        """Make the folder; raises OSError if it cannot be written to, or if others can write to it."""
        path = self.get_cache_path()
        if path.startswith("~"):
            raise OSError("there is no home directory")
        super().ensure_cache_path()  # type: ignore[misc]
        if others_can_write(path):
            raise OSError(f"other users can write to {path}")


class Named(Private, caching.UserProvidedCacheLocator):
    """The folder that NUMBA_CACHE_DIR names."""


class OfUser(Private, caching.UserWideCacheLocator):
    """The user's cache folder, such as ``~/.cache/numba``."""


CHECKED = {caching.UserProvidedCacheLocator: Named, caching.UserWideCacheLocator: OfUser}


class Places(caching.CompileResultCacheImpl):
    """Numba's places in Numba's order; the folder of the source is as safe as the source itself."""

    _locator_classes: ClassVar[list[Any]] = [
        type(each.__name__, (Stamped, CHECKED.get(each, each)), {})
        for each in caching.CompileResultCacheImpl._locator_classes
    ]

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """What was compiled, from what was kept of it: machine code of a kernel, LLVM's of a subroutine."""
        if payload[0][1] == "bitcode":
            return linking.restored(target_context, payload)
        return super().rebuild(target_context, payload)


class Files(caching.IndexDataCacheFile):
    """The files of a function: an index, and what was compiled, together with the sources and types that it is for.

    Numba writes the index first, and numbers what was compiled from 1 on for each version of the sources. If the disk
    is full then, or if two processes write at once, the index leads to what is for other sources or types.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep what was compiled."""
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        """What was compiled from these sources for this key; None if there is nothing."""
        found = super().load(key)
        return found[2] if found is not None and found[:2] == (self._source_stamp, key) else None


class Cache(caching.FunctionCache):
    """A function's cache on disk; if it cannot be read or written, the function is compiled all the same."""

    _impl_class = Places
    _cache_file: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._cache_file._source_stamp
        self._cache_file = Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these types; None if there is nothing, or if it cannot be read."""
        if from_elsewhere(arguments_of(sig)):
            return None
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None
        except (AttributeError, ImportError):  # the index names a class of another version of the library
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if that is possible."""
        if from_elsewhere(arguments_of(sig)):
            return
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()
            tell(f"{self.cache_path}: {error}")


def cache_of(function: Callable[..., Any]) -> Any:
    """The cache of a function; one that keeps nothing where there is no place for it."""
    try:
        return Cache(function)
    except RuntimeError:
        tell("there is no folder for them")
        return caching.NullCache()


def arguments_of(signature: Any) -> Iterable[Any]:
    """The types of a signature's arguments; Numba also calls a tuple of them a signature."""
    found: Iterable[Any] = getattr(signature, "args", signature)
    return found


def from_elsewhere(kinds: Iterable[Any]) -> bool:
    """Whether any of these types is, or holds, a named tuple whose class is not the library's."""
    tuples = [kind for kind in kinds if isinstance(kind, types.BaseTuple)]
    return any(
        (isinstance(kind, types.BaseNamedTuple) and not is_own(kind.instance_class)) or from_elsewhere(kind)
        for kind in tuples
    )


def is_own(of: type) -> bool:
    """Whether a class belongs to the library."""
    return of.__module__.partition(".")[0] == __name__.partition(".")[0]


def tell(reason: str) -> None:
    """Say once in a process that functions are not kept."""
    global told
    if told:
        return
    told = True
    given = os.environ.get("NUMBA_CACHE_DIR")
    warnings.warn(
        f"compiled functions cannot be kept, so every process compiles them again, up to two minutes ({reason}): "
        f"set NUMBA_CACHE_DIR to a folder that you can write to and other users cannot, got {given or 'nothing'}",
        RuntimeWarning,
        stacklevel=5,
    )


def others_can_write(path: str) -> bool:
    """Whether users other than root can put files into a folder, or replace it; a group's members are trusted."""
    if not hasattr(os, "geteuid"):
        return False
    path = os.path.abspath(path)
    folder, above = os.stat(path), os.stat(os.path.dirname(path))
    trusted = (0, os.geteuid())
    if folder.st_uid not in trusted or folder.st_mode & stat.S_IWOTH:
        return True
    return not above.st_mode & stat.S_ISVTX and (above.st_uid not in trusted or bool(above.st_mode & stat.S_IWOTH))
