"""The errors of the owner's wing that Python does not have already."""


class ReleaseError(ValueError):
    """A release, or a file that should hold one, breaks a rule that every release keeps."""


class RefusedError(ValueError):
    """A study, a report, counts or a ledger was refused: which file, which field of it, which rule.

    ``file``, ``field`` and ``rule`` are strings; the message is the three of them. None shows a true count.
    """

    def __init__(self, file: str, field: str, rule: str) -> None:
        super().__init__(f"{file}: {field} {rule}")
        self.file, self.field, self.rule = file, field, rule

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return RefusedError, (self.file, self.field, self.rule)


class LimitError(ValueError):
    """A release would cost a record more than the person who owns it allows."""
