"""The one error of the owner's wing that Python does not have already."""


class ReleaseError(ValueError):
    """A release, or a file that should hold one, breaks a rule that every release keeps."""
