"""The names that people choose, and what they may look like.

A writer's or database's name becomes a part of every object name below its prefix, so the rule here is what keeps a name from ever
leaving its prefix: no ``/``, no leading dot, nothing that a file system or an object store treats specially.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any, NewType

from .. import clock
from ..errors import InvalidName, InvalidOption

WriterId = NewType("WriterId", str)
DatabaseName = NewType("DatabaseName", str)
TagName = NewType("TagName", str)
PinName = NewType("PinName", str)

NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}"
"""The shape of a writer's and of a database's name, wherever it stands in something longer."""
_NAME = re.compile(NAME, re.ASCII)
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,127}", re.ASCII)
WORDS_OF_TIME = frozenset({"now", "today", "yesterday"})
"""Times, wherever a time or a version is given: what is called so would not be found there by its name."""
_SHAPE = "1 to 128 of A-Z a-z 0-9 . _ - and no leading dot"

COMPACTOR_PREFIX = "compactor-"
MAINTAINER_PREFIX = "maintainer-"


def writer_id(name: str) -> WriterId:
    """``name`` as a writer's id, or ``InvalidName``."""
    return WriterId(_checked(name, _NAME, "writer", _SHAPE))


def database_name(name: str) -> DatabaseName:
    """``name`` as a database's name, or ``InvalidName``."""
    return DatabaseName(_checked(name, _NAME, "database", _SHAPE))


def tag_name(name: str) -> TagName:
    """``name`` as a tag's name, or ``InvalidName``."""
    return TagName(_checked(name, _TAG, "tag", "a letter, then at most 127 of A-Z a-z 0-9 . _ -"))


def pin_name(name: str) -> PinName:
    """``name`` as the name of a writer's pin, or ``InvalidName``."""
    return PinName(_checked(name, _NAME, "pin", _SHAPE))


def new_tag_name(name: str) -> TagName:
    """``name`` as the name of a tag that is to be given, or ``InvalidName``: a word that is a time names no version any more."""
    return TagName(_no_time(tag_name(name), "tag"))


def new_pin_name(name: str) -> PinName:
    """``name`` as the name of a pin that is to be given, or ``InvalidName``, as of a tag."""
    return PinName(_no_time(pin_name(name), "pin"))


def is_tag_name(text: str) -> bool:
    """Whether ``text`` can be the name of a tag."""
    return _TAG.fullmatch(text) is not None


def host_writer(prefix: str, suffix: str = "") -> WriterId:
    """The id of this machine's writer of the role that ``prefix`` names, for what ``suffix`` names: the same each time."""
    return writer_id(prefix + re.sub(r"[^A-Za-z0-9.-]", "-", clock.host_name())[:64] + suffix)


def is_name(text: str) -> bool:
    """Whether ``text`` can be the name of a writer or a database."""
    return _NAME.fullmatch(text) is not None


def is_data_writer(writer: str) -> bool:
    """Whether the writer commits rows of its own: compactors and maintainers do not count where one writer is looked for."""
    return not is_compactor(writer) and not is_maintainer(writer)


def is_compactor(writer: str) -> bool:
    """Whether the writer's checkpoints may be of everybody."""
    return writer.startswith(COMPACTOR_PREFIX)


def is_maintainer(writer: str) -> bool:
    """Whether the writer may delete what others have written."""
    return writer.startswith(MAINTAINER_PREFIX)


def role_of(writer: str) -> str:
    """What the writer's name says that it is: a compactor, a maintainer, or any other writer."""
    if is_compactor(writer):
        return "compactor"
    return "maintainer" if is_maintainer(writer) else "writer"


def maintainer_id(writer: str | None) -> WriterId:
    """The maintainer that was asked for, by default this machine's; ``InvalidOption`` for a name that is none's."""
    name = host_writer(MAINTAINER_PREFIX) if writer is None else writer_id(writer)
    if not is_maintainer(name):
        raise InvalidOption(
            f"{name!r} is not a maintainer, and nobody else deletes.", next_step=f"Call it {MAINTAINER_PREFIX}NAME."
        )
    return name


def owner_id(owner: str | uuid.UUID) -> str:
    """An owner of buckets, as an option names one, in the form in which rows show it; ``InvalidOption`` for what is no uuid."""
    try:
        return str(owner if isinstance(owner, uuid.UUID) else uuid.UUID(owner))
    except (ValueError, TypeError, AttributeError):
        raise InvalidOption(f"The owner {owner!r} is not a uuid.", next_step="Give one, or leave it out.") from None


def names_given(given: str | Iterable[str], what: str, example: str) -> tuple[str, ...]:
    """What an argument names, which takes several of ``what``, or one; ``InvalidOption`` for anything else."""
    if isinstance(given, str):
        return (given,)
    several: Any = given
    found: tuple[Any, ...] = tuple(several) if isinstance(several, Iterable) and not isinstance(several, bytes) else (None,)
    if not all(isinstance(name, str) for name in found):
        raise InvalidOption(f"The {what} {given!r} are not a list of names.", next_step=f"Give a list, such as {example}.")
    return found


def _no_time(name: str, kind: str) -> str:
    if name.lower() in WORDS_OF_TIME:
        raise InvalidName(f"{name!r} cannot be the name of a {kind}: it is a time.", next_step="Choose another name.")
    return name


def _checked(name: str, shape: re.Pattern[str], kind: str, rule: str) -> str:
    if not isinstance(name, str) or shape.fullmatch(name) is None:
        raise InvalidName(f"{name!r} cannot be the name of a {kind}.", next_step=f"Use {rule}.")
    return name
