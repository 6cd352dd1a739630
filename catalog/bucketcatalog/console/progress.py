"""A progress line on standard error, where that is a terminal and the work is long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Tell = Callable[[str], None]


@contextmanager
def progress_line(label: str) -> Iterator[Tell]:
    """A spinner with ``label`` and what it is told; nothing at all where nobody watches."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda text: progress.update(task, description=f"{label}  {text}")
