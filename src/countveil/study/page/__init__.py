"""The participant's page: one HTML file that counts, adds exact noise and keeps a ledger, in a browser, offline.

Made of a study with the standard library alone: the parts beside this module, the noise tables of the study's
levels, the Unicode tables of this Python, and a content-security policy that lets nothing else run or load.
"""

from countveil.study.page.write import page, strings

__all__ = ["page", "strings"]
