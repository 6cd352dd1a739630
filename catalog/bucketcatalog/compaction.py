"""Compaction that goes on by itself, under the name that users import it by: see ``maintain.compactor``."""

from .maintain.compactor import Compactor, Policy, Round

__all__ = ["Compactor", "Policy", "Round"]
