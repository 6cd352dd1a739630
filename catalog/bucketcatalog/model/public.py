"""What tab completion shows of an object: what is meant for its users, and not all that its class has for the rest of the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Shown = TypeVar("Shown", bound=type)


def public(*names: str) -> Callable[[Shown], Shown]:
    """A class whose objects list these names, and those that its bases list so. Every other attribute can be used as ever."""

    def decorate(shown: Shown) -> Shown:
        def listed(self: Any) -> list[str]:
            bases = (vars(base).get("_listed", ()) for base in type(self).__mro__)
            return sorted({name for of_base in bases for name in of_base})

        shown._listed = names  # type: ignore[attr-defined]
        shown.__dir__ = listed  # type: ignore[assignment]
        return shown

    return decorate
