"""Conditions as text, parsed: a small part of SQL's, and what is wrong with what is none.

    content_length > 100 AND (name LIKE '2024/%' OR modified >= '2 days ago') AND NOT tags['team'] IN ('a', 'b')

Whatever is not understood is an ``InvalidOption`` that says at which character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, NoReturn

from ..errors import InvalidOption
from .phrases import Call, Compare, In, IsNull, Joined, Like, Literal, Operand, Path, Phrase, Truth, negated

_RESERVED = frozenset(["AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "ILIKE", "BETWEEN", "ESCAPE", "TRUE", "FALSE"])
_SAME = {"==": "=", "<>": "!="}
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", *_SAME)
_FUNCTIONS = ("LOWER", "UPPER", "LENGTH")
_DEEPEST = 64
_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.])
      | [xX]'(?P<bytes>(?:[0-9a-fA-F]{2})*)'
      | '(?P<text>(?:[^']|'')*)'
      | "(?P<quoted>(?:[^"]|"")+)"
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=|>=|<>|!=|==|[=<>()\[\],.+-])""",
    re.VERBOSE,
)
FORMS = (
    "Write column OP value with =, !=, <, <=, >, >=, or column [NOT] IN (...), [NOT] BETWEEN ... AND ..., [NOT] LIKE '...', IS [NOT] NULL, "
    "joined by AND, OR and NOT; text stands in single quotes, and in double ones a column that is no plain word."
)


def parse(text: str) -> Phrase:
    """The condition that a text says, with no NOT left but in what is negative itself; ``InvalidOption`` where it says none."""
    parser = _Parser(text)
    found = parser.condition()
    if parser.token.kind != "end":
        parser.refuse("there it should end, or go on with AND or OR")
    return found


_BEGINS = {"'": "the text that begins here has no end", '"': "the name that begins here has no end"}
_BEGINS |= dict.fromkeys("0123456789", "what begins here is no number; sizes are in bytes")


class _Token(NamedTuple):
    kind: str
    value: str
    at: int

    @property
    def shown(self) -> str:
        return repr(self.value) if self.kind != "end" else "its end"

    @property
    def keyword(self) -> str:
        return self.value.upper() if self.kind == "word" else ""


class _Parser:
    """A text from left to right, one token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0
        self._tokens = self._split()
        self.token = next(self._tokens)

    def refuse(self, why: str, at: int | None = None) -> NoReturn:
        """The error at a place of the text."""
        place = self.token.at if at is None else at
        shown = self._text if len(self._text) <= 200 else f"{self._text[:200]}..."
        raise InvalidOption(f"The condition {shown!r} is not understood at character {place + 1}: {why}.", next_step=FORMS)

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is None:
                self.refuse(_BEGINS.get(self._text[at], f"{self._text[at]!r} begins nothing that it can hold"), at)
            if found.lastgroup != "space":
                kind = found.lastgroup or ""
                yield _Token(kind, found[kind], at)
            at = found.end()
        yield _Token("end", "", len(self._text))

    def _next(self) -> _Token:
        token, self.token = self.token, next(self._tokens, self.token)
        return token

    def _takes(self, *words: str) -> str:
        """The keyword or sign that comes next, where it is one of these."""
        found = self.token.keyword or (self.token.value if self.token.kind == "sign" else "")
        if found not in words:
            return ""
        self._next()
        return found

    def _needs(self, word: str) -> None:
        if not self._takes(word):
            self.refuse(f"{word} is expected, and there is {self.token.shown}")

    def condition(self) -> Phrase:
        """Whatever OR joins."""
        return self._whole(self._or())

    def _or(self) -> Phrase | Operand:
        return self._joined(lambda: self._joined(self._not, "AND"), "OR")

    def _joined(self, part: Callable[[], Phrase | Operand], word: str) -> Phrase | Operand:
        first = part()
        if self.token.keyword != word:
            return first
        parts = [self._whole(first)]
        while self._takes(word):
            parts.append(self._whole(part()))
        flat = (each.parts if isinstance(each, Joined) and each.is_or == (word == "OR") else (each,) for each in parts)
        return Joined(tuple(one for each in flat for one in each), word == "OR")

    def _not(self) -> Phrase | Operand:
        if not self._takes("NOT"):
            return self._predicate()
        with_not = self._deeper(self._not)
        return negated(self._whole(with_not))

    def _deeper(self, part: Callable[[], Any]) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            self.refuse("it is nested too deeply")
        found = part()
        self._depth -= 1
        return found

    def _whole(self, found: Phrase | Operand) -> Phrase:
        """What stands alone as a condition."""
        if not isinstance(found, Literal | Path | Call):
            return found
        if isinstance(found, Literal) and not (found.value is None or isinstance(found.value, bool)):
            self.refuse(f"a comparison is expected, and there is {self.token.shown}")
        return Truth(found)

    def _predicate(self) -> Phrase | Operand:
        found = self._parenthesised() if self._takes("(") else self._operand()
        if not isinstance(found, Literal | Path | Call):
            return found
        if op := self._takes(*_COMPARISONS):
            return Compare(found, _SAME.get(op, op), self._operand())
        if self._takes("IS"):
            is_negative = bool(self._takes("NOT"))
            self._needs("NULL")
            return IsNull(found, is_negative)
        is_negative = bool(self._takes("NOT"))
        word = self._takes("IN", "BETWEEN", "LIKE", "ILIKE")
        if word == "IN":
            return In(found, self._list(), is_negative)
        if word == "BETWEEN":
            low = self._operand()
            self._needs("AND")
            within = Joined((Compare(found, ">=", low), Compare(found, "<=", self._operand())))
            return negated(within) if is_negative else within
        if word:
            return Like(found, self._pattern(), word == "ILIKE", is_negative)
        if is_negative:
            self.refuse(f"IN, BETWEEN or LIKE is expected, and there is {self.token.shown}")
        return found

    def _parenthesised(self) -> Phrase | Operand:
        found: Phrase | Operand = self._deeper(self._or)
        self._needs(")")
        return found

    def _list(self) -> tuple[Literal, ...]:
        self._needs("(")
        found = [self._literal()]
        while self._takes(","):
            found.append(self._literal())
        self._needs(")")
        return tuple(found)

    def _literal(self) -> Literal:
        at, found = self.token.at, self._operand()
        if not isinstance(found, Literal):
            self.refuse("a value is expected here, and no column", at)
        return found

    def _text_literal(self) -> str:
        at, found = self.token.at, self._literal()
        if not isinstance(found.value, str) or found.is_time:
            self.refuse("text is expected here", at)
        return found.value

    def _pattern(self) -> tuple[str | bool | None, ...]:
        at, text = self.token.at, self._text_literal()
        escape = ""
        if self._takes("ESCAPE"):
            at_escape, escape = self.token.at, self._text_literal()
            if len(escape) != 1:
                self.refuse("one character escapes others", at_escape)
        parts: list[str | bool | None] = []
        characters = iter(text)
        for character in characters:
            if character == escape:
                following = next(characters, "")
                if following not in ("%", "_", escape) or not following:
                    self.refuse(f"in the pattern {escape!r} stands before neither %, _ nor itself", at)
                parts.append(following)
            else:
                parts.append({"%": None, "_": True}.get(character, character))
        return _run_together(parts)

    def _operand(self) -> Operand:
        token = self.token
        if token.kind == "sign" and token.value in "+-":
            self._next()
            if self.token.kind != "number":
                self.refuse(f"a number is expected behind {token.value}, and there is {self.token.shown}")
            found = self._number()
            return Literal(-found if token.value == "-" else found)
        if token.kind == "sign" and token.value == "(":
            self._next()
            inner = self._parenthesised()
            if not isinstance(inner, Literal | Path | Call):
                self.refuse("a value or a column is expected in these parentheses", token.at)
            return inner
        if token.kind == "number":
            return Literal(self._number())
        if token.kind == "text":
            return Literal(self._next().value.replace("''", "'"))
        if token.kind == "bytes":
            return Literal(bytes.fromhex(self._next().value))
        if token.kind == "quoted" or (token.kind == "word" and token.keyword not in _RESERVED):
            return self._named()
        if word := self._takes("TRUE", "FALSE", "NULL"):
            return Literal({"TRUE": True, "FALSE": False, "NULL": None}[word])
        self.refuse(f"a column or a value is expected, and there is {token.shown}")

    def _number(self) -> int | Decimal:
        token = self._next()
        if token.value.isdigit() and len(token.value) < 64:
            return int(token.value)
        try:
            return Decimal(token.value)
        except InvalidOperation:
            self.refuse("no number has as many digits", token.at)

    def _named(self) -> Operand:
        """A column, what lies in it, a function of it, or a time."""
        token = self._next()
        if token.keyword in ("DATE", "TIMESTAMP") and self.token.kind == "text":
            return Literal(self._next().value.replace("''", "'"), is_time=True)
        if token.kind == "word" and self._takes("("):
            return self._called(token)
        name, steps = _name_of(token), list[str | int]()
        while sign := self._takes(".", "["):
            if sign == ".":
                if self.token.kind not in ("word", "quoted"):
                    self.refuse(f"the name of a field is expected, and there is {self.token.shown}")
                steps.append(_name_of(self._next()))
                continue
            at, step = self.token.at, self._literal().value
            if isinstance(step, bool) or not isinstance(step, str | int):
                self.refuse("a key is text or a whole number", at)
            steps.append(step)
            self._needs("]")
        return Path(name, tuple(steps))

    def _called(self, token: _Token) -> Call:
        if token.keyword not in _FUNCTIONS:
            self.refuse(f"there is no function {token.value!r}, but {', '.join(map(str.lower, _FUNCTIONS))}", token.at)
        of = self._deeper(self._operand)
        self._needs(")")
        return Call(token.keyword, of)


def _name_of(token: _Token) -> str:
    return token.value.replace('""', '"') if token.kind == "quoted" else token.value


def _run_together(parts: list[str | bool | None]) -> tuple[str | bool | None, ...]:
    """The same with text next to text as one."""
    found: list[str | bool | None] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part is not None or not found or found[-1] is not None:
            found.append(part)
    return tuple(found)
