"""Conditions as text: what is understood of them, and at which character it is not."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from bucketcatalog import InvalidOption
from bucketcatalog.where.grammar import parse
from bucketcatalog.where.phrases import (
    Call,
    Compare,
    In,
    IsNull,
    Joined,
    Like,
    Literal,
    Path,
    Phrase,
    Truth,
    columns_of,
    conjuncts,
    negated,
)

A, B, C = (Compare(Path(name), "=", Literal(1)) for name in "abc")


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("a = 1", A),
        ("a == 1", A),
        ("(((a)) = (1))", A),
        ("a <> 1", negated(A)),
        ("1 < a", Compare(Literal(1), "<", Path("a"))),
        ("a = 1 or b = 1 and c = 1", Joined((A, Joined((B, C))), is_or=True)),
        ("(a = 1 OR b = 1) And c = 1", Joined((Joined((A, B), is_or=True), C))),
        ("a = 1 and (b = 1 and c = 1)", Joined((A, B, C))),
        ("not a = 1", negated(A)),
        ("not not a = 1", A),
        ("not (a = 1 and not b = 1)", Joined((negated(A), B), is_or=True)),
        ("a is null", IsNull(Path("a"))),
        ("not a is not null", IsNull(Path("a"))),
        ("a", Truth(Path("a"))),
        ("not a", Truth(Path("a"), is_negative=True)),
        ("a or null", Joined((Truth(Path("a")), Truth(Literal(None))), is_or=True)),
        ("a in (1, 'x', NULL)", In(Path("a"), (Literal(1), Literal("x"), Literal(None)))),
        ("not a not in (1)", In(Path("a"), (Literal(1),))),
        ("a between -1 and +2", Joined((Compare(Path("a"), ">=", Literal(-1)), Compare(Path("a"), "<=", Literal(2))))),
        (
            "a not between 1 and 2",
            Joined((Compare(Path("a"), "<", Literal(1)), Compare(Path("a"), ">", Literal(2))), is_or=True),
        ),
        ("a like '2024/%'", Like(Path("a"), ("2024/", None))),
        ("a not ilike '_%%x'", Like(Path("a"), (True, None, "x"), ignores_case=True, is_negative=True)),
        ("a like '!%!!_' escape '!'", Like(Path("a"), ("%!", True))),
        ("a like ''", Like(Path("a"), ())),
        ("a = 'it''s \"so\"'", Compare(Path("a"), "=", Literal('it\'s "so"'))),
        ('"a ""b"" = 1" = 1', Compare(Path('a "b" = 1'), "=", Literal(1))),
        ('"and" = 1', Compare(Path("and"), "=", Literal(1))),
        ("größe = 1", Compare(Path("größe"), "=", Literal(1))),
        ("a = 1.50", Compare(Path("a"), "=", Literal(Decimal("1.50")))),
        ("a = .5e-3", Compare(Path("a"), "=", Literal(Decimal("0.0005")))),
        ("a = X'0aFF'", Compare(Path("a"), "=", Literal(b"\x0a\xff"))),
        ("a >= DATE '2024-05-01'", Compare(Path("a"), ">=", Literal("2024-05-01", is_time=True))),
        ("date = 1", Compare(Path("date"), "=", Literal(1))),
        ("a.b['c'][4] = TRUE", Compare(Path("a", ("b", "c", 4)), "=", Literal(value=True))),
        ("lower(upper(a)) = 'x'", Compare(Call("LOWER", Call("UPPER", Path("a"))), "=", Literal("x"))),
        ("lower = 1", Compare(Path("lower"), "=", Literal(1))),
    ],
    ids=str,
)
def test_text_says(text: str, phrase: Phrase) -> None:
    assert parse(text) == phrase


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("", 1, "a column or a value is expected, and there is its end"),
        ("a >", 4, "a column or a value is expected, and there is its end"),
        ("a = b = c", 7, "there it should end, or go on with AND or OR"),
        ("a b", 3, "there it should end"),
        ("SELECT 1", 8, "there it should end"),
        ("a = 1; DROP TABLE a", 6, "';' begins nothing"),
        ("a = 1 -- no", 7, "there it should end"),
        ("a ~ 1", 3, "'~' begins nothing"),
        ("a + 1 > 2", 3, "there it should end"),
        ("a::int = 1", 2, "':' begins nothing"),
        ("a = 'open", 5, "the text that begins here has no end"),
        ("a = 1x", 5, "what begins here is no number"),
        ("'x'", 4, "a comparison is expected, and there is its end"),
        ("a and 5", 8, "a comparison is expected"),
        ("a in ()", 7, "a column or a value is expected, and there is ')'"),
        ("a in (b)", 7, "a value is expected here, and no column"),
        ("a in 1", 6, "( is expected, and there is '1'"),
        ("a is 5", 6, "NULL is expected, and there is '5'"),
        ("a not 5", 7, "IN, BETWEEN or LIKE is expected"),
        ("a between 1 or 2", 13, "AND is expected, and there is 'or'"),
        ("a like 5", 8, "text is expected here"),
        ("a like 'x' escape 'yz'", 19, "one character escapes others"),
        ("a like 'x!' escape '!'", 8, "stands before neither %, _ nor itself"),
        ("sqrt(a) = 1", 1, "there is no function 'sqrt', but lower, upper, length"),
        ("a[b] = 1", 3, "a value is expected here, and no column"),
        ("a[true] = 1", 3, "a key is text or a whole number"),
        ("a. = 1", 4, "the name of a field is expected"),
        ("a = - b", 7, "a number is expected behind -"),
        ("a = (b = 1)", 5, "a value or a column is expected in these parentheses"),
        ("(a = 1", 7, ") is expected, and there is its end"),
        ("(" * 100 + "a" + ")" * 100, 66, "it is nested too deeply"),
        ("not " * 100 + "a", 261, "it is nested too deeply"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_not_understood_is_refused_with_its_place(text: str, place: int, why: str) -> None:
    with pytest.raises(
        InvalidOption, match=rf"is not understood at character {place}: .*{re.escape(why)}.*Next: Write column OP value"
    ):
        parse(text)


def test_a_long_chain_is_no_deep_one() -> None:
    phrase = parse(" or ".join(f"a = {n}" for n in range(5_000)))
    assert isinstance(phrase, Joined) and len(phrase.parts) == 5_000


def test_the_columns_are_told_and_what_AND_joins_is_taken_apart() -> None:  # noqa: N802
    phrase = parse("a = 1 and (b.c = 2 or lower(a) = d['x']) and 1 < e")
    assert columns_of(phrase) == ("a", "b", "d", "e")
    assert [columns_of(part) for part in conjuncts(phrase)] == [("a",), ("b", "a", "d"), ("e",)]
    assert conjuncts(A) == (A,)
