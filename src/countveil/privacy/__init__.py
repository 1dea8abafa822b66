"""The data owner's wing: counts in, noisy counts out, with the standard library alone.

Importing it needs no NumPy; NumPy, SciPy and pandas are used where the counts come in their containers.
"""

from countveil.privacy.bulk import privatize_to_files
from countveil.privacy.errors import ReleaseError
from countveil.privacy.level import PrivacyLevel
from countveil.privacy.privatize import privatize
from countveil.privacy.release import Release
from countveil.privacy.rounded import round_randomly

__all__ = ["PrivacyLevel", "Release", "ReleaseError", "privatize", "privatize_to_files", "round_randomly"]
