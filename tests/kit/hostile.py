"""Hostile names and what becomes of each: the one table that the tests of every interface and the documentation share.

``TAKEN`` is byte-equal through whatever the name passes; ``REFUSED`` is a typed error, and nothing is written. Bucket and object names
follow one rule: any Unicode text whose UTF-8 form has at most 1,024 bytes. Nothing is normalised, folded, stripped or reserved, for a
name never becomes a part of a path.
"""

from __future__ import annotations

from dataclasses import dataclass

TAKEN, REFUSED = "taken", "refused"


@dataclass(frozen=True, slots=True)
class Hostile:
    """A name, why it is one, and what becomes of it as the name of a bucket or an object, and as an argument.

    ``marker`` stands for prefix, marker, ``where`` and ``get`` too, except that ``get`` and ``where`` refuse what no name can be.
    """

    label: str
    name: str
    as_name: str = TAKEN
    as_marker: str = TAKEN
    as_delimiter: str = TAKEN


HOSTILE = [
    Hostile("the empty name", "", as_delimiter=REFUSED),
    Hostile("NUL", "\x00"),
    Hostile("NUL within", "a\x00b"),
    Hostile("NUL at the end", "a\x00"),
    Hostile("what escapes NUL within a key", "a\x00\xff"),
    Hostile("what ends a field within a key", "a\x00\x01b"),
    Hostile("a dot", "."),
    Hostile("two dots", ".."),
    Hostile("two dots within", "a/../b"),
    Hostile("leaving upwards", "../../etc/passwd"),
    Hostile("a slash", "/"),
    Hostile("a slash in front", "/a"),
    Hostile("a slash at the end", "a/"),
    Hostile("two slashes within", "a//b"),
    Hostile("backslashes", "a\\..\\b"),
    Hostile("a line break", "a\nb\r\n"),
    Hostile("white space around", " \ta "),
    Hostile("control characters", "\x01\x1b[31m\x7f\x85"),
    Hostile("quotes and what shells and SQL expand", "'\"`$(x)`;--%s%00{}*?[a]~"),
    Hostile("a percent escape", "%2F%00%2e%2e"),
    Hostile("a byte order mark", "\ufeffa"),
    Hostile("right-to-left override", "a\u202egpj.exe"),
    Hostile("a zero-width joiner", "a\u200db"),
    Hostile("a line separator", "a\u2028b"),
    Hostile("a noncharacter", "\uffff"),
    Hostile("the last code point", "\U0010ffff"),
    Hostile("composed", "caf\u00e9"),
    Hostile("the same, decomposed", "cafe\u0301"),
    Hostile("folds to ASCII when compatible", "\u212a\ufb01"),
    Hostile("upper case", "README"),
    Hostile("the same in lower case", "readme"),
    Hostile("sharp s", "STRASSE\u1e9e"),
    Hostile("before the surrogates in UTF-16, after in bytes: first", "\uff5e"),
    Hostile("before the surrogates in UTF-16, after in bytes: second", "\U0001f600"),
    Hostile("looks like a number", "007"),
    Hostile("looks like null", "null"),
    Hostile("looks like a name in the log", "w/default/transactions/00000000000000000000/x.txn"),
    Hostile("1,024 bytes", "x" * 1024),
    Hostile("1,024 bytes of two each", "\u00e9" * 512),
    Hostile("1,024 bytes of four each", "\U0001f600" * 256),
    Hostile("1,025 bytes", "x" * 1025, as_name=REFUSED),
    Hostile("1,025 bytes in 513 characters", "\u00e9" * 512 + "x", as_name=REFUSED),
    Hostile("a megabyte", "x" * (1 << 20), as_name=REFUSED),
    Hostile("a lone high surrogate", "\ud800", as_name=REFUSED, as_marker=REFUSED, as_delimiter=REFUSED),
    Hostile("a lone low surrogate within", "a\udfffb", as_name=REFUSED, as_marker=REFUSED, as_delimiter=REFUSED),
    Hostile("a surrogate pair as two characters", "\ud83d\ude00", as_name=REFUSED, as_marker=REFUSED, as_delimiter=REFUSED),
    Hostile("a byte that was no UTF-8", b"a\xff".decode(errors="surrogateescape"), REFUSED, REFUSED, REFUSED),
]
GOOD = [case.name for case in HOSTILE if case.as_name == TAKEN]
IN_ORDER = sorted(GOOD, key=str.encode)
