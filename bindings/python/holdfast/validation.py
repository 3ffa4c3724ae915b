"""The validator: finds what a program does wrong with buffers, kernels and streams, in the first run that contains it.

    import holdfast.core as mx
    from holdfast import validation

    with validation.Scope() as scope:
        mx.eval(kernel(...))
    for report in scope.reports:
        print(report)

``HOLDFAST_VALIDATE=1`` does so for a whole program. docs/validation.md lists the checks.
"""

from __future__ import annotations

import dataclasses

import holdfast.core  # noqa: F401  (what scopes look at)
from holdfast._native import validation as _native

__all__ = ["Report", "Scope", "ValidationError"]


@dataclasses.dataclass(frozen=True)
class Report:
    """Something that was found. Sentences may change from version to version; ``id`` and the names of ``fields`` do not."""

    id: str  #: "check.kind", for example "lifetime.buffer-released"
    severity: str  #: "warning" or "error"
    sentence: str  #: what happened, between whom
    advice: str  #: what to do about it
    fields: dict[str, str]
    count: int  #: how often it was found: the same kind between the same ops is reported once
    text: str = dataclasses.field(repr=False)  #: sentence, advice, and the fields as "key=value" on a line
    json: str = dataclasses.field(repr=False)  #: all of it, as one line

    def __str__(self) -> str:
        return self.text


class ValidationError(RuntimeError):
    """What a scope with ``mode="throw"`` raises; ``report`` says what was found."""

    def __init__(self, message: str, report: Report | tuple):
        super().__init__(message)
        self.report = report if isinstance(report, Report) else Report(*report)

    def __reduce__(self):
        return type(self), (str(self), self.report)


class Scope:
    """Inside ``with``, the whole process is validated, all its threads. One at a time.

    ``checks`` are names of checks, or ``"1"`` for all but those that must be asked for by name. ``mode`` is ``"report"``: what is found is
    kept in ``reports``; ``"throw"``: errors are also raised, as ValidationError, by the call that is wrong, by every use of what a kernel
    that is wrong has written, or by the next ``synchronize``; ``"abort"``: the process ends. ``ignore`` are identifiers of reports that are
    not wanted. With ``print`` reports go to stderr, too, and with ``json`` to a file, a line each. Names are strings with commas, or
    sequences of strings.
    """

    def __init__(self, checks="1", *, mode: str = "report", ignore="", print: bool = False, json: str = ""):
        def joined(names):
            return names if isinstance(names, str) else ",".join(names)

        self._options = (joined(checks), mode, joined(ignore), print, str(json))
        self._is_active = False
        self._reports: list[Report] = []

    def __enter__(self) -> Scope:
        _native._begin(*self._options)
        self._is_active = True
        return self

    def __exit__(self, *_) -> None:
        self._reports = self.reports
        self._is_active = False
        _native._end()

    @property
    def reports(self) -> list[Report]:
        """What was found so far, in order; after the end of the scope, all of it."""
        if not self._is_active:
            return list(self._reports)
        return [Report(*each) for each in _native._reports()]

    def check_left_over(self) -> None:
        """Reports what would be left over if the program ended now: a capture that was not stopped, work that nobody waited for."""
        if not self._is_active:
            raise RuntimeError("[validation] the scope is not active")
        _native._check_left_over()
