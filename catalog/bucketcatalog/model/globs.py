r"""Globs as users write them, as regular expressions that Arrow and Python read alike.

As ``fnmatch`` has them: ``*`` matches anything, ``/`` included, ``?`` one character, ``[...]`` one of a set, ``[!...]`` one of none of it;
case counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption

_WILD = re.compile(r"[*?\[]")
_SET_OF = re.compile(r"\[!?.[^\]]*\]", re.DOTALL)
_SPECIAL = re.compile(r"([^\w/ \-])", re.ASCII)


def pattern_of(globs: Sequence[str]) -> str:
    """What matches a whole text where one of the globs does; ``InvalidOption`` where one cannot be matched."""
    pattern = rf"(?s)\A(?:{'|'.join(translated(glob) for glob in globs)})\z"
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise InvalidOption(
            f"{globs[0] if len(globs) == 1 else list(globs)!r} cannot be matched: {str(error).splitlines()[0]}.",
            next_step="Use globs with *, ? and [...].",
        ) from None
    return pattern


def literal_beginning(glob: str) -> str:
    """What everything that a glob matches begins with: all of it where nothing in it is a wildcard."""
    return _WILD.split(glob, maxsplit=1)[0]


def longest_literal(glob: str) -> str:
    """The longest text that stands in everything that a glob matches, which is found faster than the glob is matched."""
    return max(_WILD.split(_SET_OF.sub("*", glob)), key=len)


def translated(glob: str) -> str:
    """A glob as a regular expression, without what ties it to the beginning and the end of a text."""
    parts, at = [], 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            parts.append(".*")
        elif char == "?":
            parts.append(".")
        elif char == "[" and (end := glob.find("]", at + 1 + (glob[at : at + 1] == "!"))) >= 0:
            parts.append(_set(glob[at:end]))
            at = end + 1
        else:
            parts.append(_SPECIAL.sub(r"\\\1", char) if char.isascii() else char)
    return "".join(parts)


def _set(body: str) -> str:
    negated = body.startswith("!")
    body = (body[1:] if negated else body).replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]")
    if body.startswith("^"):
        body = "\\" + body
    return f"[{'^' if negated else ''}{body}]"
