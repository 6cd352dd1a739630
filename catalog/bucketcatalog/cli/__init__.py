"""The command line. ``app`` runs commands and turns errors into exit codes; each group of commands has a module; ``output`` alone prints.

Exit codes: 0, 1 (the operation failed; one line on standard error with the error's code and the next step), 2 (wrong usage). With
``--json`` standard output has one JSON document or JSON lines and nothing else.
"""

from .app import main, run

__all__ = ["main", "run"]
