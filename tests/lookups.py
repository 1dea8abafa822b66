"""h5netcdf opens a variable of a file again for each of its properties, which is half of the time that a fit takes to
be read; in tests what is only read is opened once. Commands in processes of their own read as users do.
"""

from h5netcdf.core import BaseObject
from h5netcdf.dimensions import Dimension


def looked_up_once() -> None:
    """Let variables and dimensions of files that are only read keep what they were once found to be."""
    for kind in (BaseObject, Dimension):
        look_up = getattr(kind, "_h5ds", None)  # private: where it is gone, files are read as users read them
        if isinstance(look_up, property):
            kind._h5ds = property(once(look_up.fget))


def once(look_up):
    """The same for each object of a file that is only read."""

    def found(self):
        if self._root._writable:
            return look_up(self)
        file, known = self._root._h5file, self.__dict__.get("_known")
        if known is None or known[0] is not file:
            known = self._known = (file, look_up(self))
        return known[1]

    return found
