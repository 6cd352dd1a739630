"""What applications have committed under their own version numbers."""

from __future__ import annotations

from ..format.checkpoints import ApplicationResult
from ..format.transactions import Link
from .view import View


def latest_results(view: View) -> dict[tuple[str, str], ApplicationResult]:
    """By writer and application id the result with the largest version in the view."""
    known = [result for checkpoint in view.checkpoints for result in checkpoint.applications]
    for t in view.tail:
        if t.application is not None:
            link = Link(t.revision, t.uuid, t.digest)
            known.append(ApplicationResult(t.writer, t.application.id, t.application.version, link, t.commit_time))
    return {(r.writer, r.id): r for r in sorted(known, key=lambda r: (r.version, r.commit_time))}
