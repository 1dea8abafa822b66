"""The receiving end of a study: reports come in by POST, are checked, and are on disk before they are answered."""

from urllib.parse import urlsplit

from countveil.privacy.study import Study


def path_of(study: Study) -> str:
    """The path of the address that the study names, or /reports."""
    return (urlsplit(study.address).path or "/") if study.address else "/reports"
