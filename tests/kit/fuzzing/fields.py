"""Any field of any message changed, by what its descriptor says: also of messages whose types nobody knows here, as their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_F = FieldDescriptor
_SIGNED = {_F.CPPTYPE_INT32: 31, _F.CPPTYPE_INT64: 63}
_UNSIGNED = {_F.CPPTYPE_UINT32: 32, _F.CPPTYPE_UINT64: 64}
_UNKNOWN = (b"\xca\x3e\x03abc", b"\xc8\x3e\x07", b"\xca\x3e\x00", b"\xfa\x7f\x20" + bytes(32))
"""Fields that no message has, and one that looks like a checksum."""
_FEW = 12


@dataclass(frozen=True)
class Pool:
    """What a field can be replaced by: names, bytes, and messages by their type, of all the files there are."""

    names: Sequence[str]
    blobs: Sequence[bytes]
    messages: dict[str, list[Message]]


def integers(bits: int, *, signed: bool) -> list[int]:
    """The numbers of a type that are least and most, and those that are easily taken for something else."""
    most = (1 << bits) - 1
    found = [0, 1, 2, 127, 128, 65_536, 10_000_000, most, most - 1, 1 << (bits - 1)]
    if bits > 32:
        found += [10**18, 10**16, 253_402_300_800_000_000, (1 << 31) - 1, 1 << 32, (1 << 53) + 1]
    return [*found, -1, -most, -most - 1] if signed else found


def change(message: Message, random: Random, pool: Pool) -> str:
    """Change one field of a message or of one within it; returns what was done."""
    fields = _fields(message, random)
    if not fields:
        return _add_unknown(message, random)
    field = random.choice(fields)
    there = _is_set(message, field)
    if field.message_type is not None and there and not _is_map(field) and random.random() < 0.72:
        below = getattr(message, field.name) if not field.is_extension else message.Extensions[field]
        item = random.choice(list(below)) if _is_repeated(field) else below
        return f"{field.name}.{change(item, random, pool)}"
    if random.random() < 0.02:
        return _add_unknown(message, random)
    return f"{field.name}: {_change_field(message, field, random, pool)}"


def _fields(message: Message, random: Random) -> list[Any]:
    """Those that are set mostly, at times any that could be; no checksum, which is made right again."""
    said: list[Any] = [field for field, _ in message.ListFields()]
    every: list[Any] = [*message.DESCRIPTOR.fields, *(field for field in said if field.is_extension)]
    found = every if not said or random.random() < 0.3 else said
    return [field for field in found if field.number != 2047]


def _is_set(message: Message, field: Any) -> bool:
    return any(field.full_name == each.full_name for each, _ in message.ListFields())


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _add_unknown(message: Message, random: Random) -> str:
    message.MergeFromString(random.choice(_UNKNOWN))
    return "a field that nobody knows"


def _change_field(message: Message, field: Any, random: Random, pool: Pool) -> str:
    holder = message.Extensions if field.is_extension else None
    value = holder[field] if holder is not None else getattr(message, field.name)
    if _is_map(field):
        return _change_map(value, field, random)
    if _is_repeated(field):
        return _change_repeated(value, field, random, pool)
    if field.message_type is not None:
        return _change_message(message, value, field, random, pool)
    if random.random() < 0.15:
        message.ClearField(field.name) if holder is None else message.ClearExtension(field)
        return "dropped"
    new = scalar(field, value, random, pool)
    if holder is not None:
        holder[field] = new
    else:
        setattr(message, field.name, new)
    return shown(new)


def shown(value: Any) -> str:
    """A value, not longer than a line."""
    text = repr(value)
    return text if len(text) < 60 else f"{text[:50]}... ({len(value)})" if hasattr(value, "__len__") else text[:60]


def scalar(field: Any, value: Any, random: Random, pool: Pool) -> Any:
    """Another value for a field."""
    kind = field.cpp_type
    if kind in _SIGNED or kind in _UNSIGNED:
        bits = _SIGNED.get(kind) or _UNSIGNED[kind]
        signed = kind in _SIGNED
        low, high = (-(1 << bits), (1 << bits) - 1) if signed else (0, (1 << bits) - 1)
        near = [value + 1, value - 1, value * 2, value // 2, value + 1_000_000, value + 86_400_000_000, -value]
        new = random.choice(near) if random.random() < 0.4 else random.choice(integers(bits, signed=signed))
        return min(max(int(new), low), high)
    if kind == _F.CPPTYPE_ENUM and field.enum_type.is_closed:
        return random.choice(sorted(field.enum_type.values_by_number))
    if kind == _F.CPPTYPE_ENUM:
        return random.choice([0, 1, 2, 3, 4, 5, 6, 99, (1 << 31) - 1, -1])
    if kind == _F.CPPTYPE_BOOL:
        return not value
    if kind in (_F.CPPTYPE_DOUBLE, _F.CPPTYPE_FLOAT):
        return random.choice([0.0, -0.0, float("nan"), float("inf"), 1e300])
    if field.type == _F.TYPE_STRING:
        return text(value, random, pool)
    return blob(value, random, pool)


def text(value: str, random: Random, pool: Pool) -> str:
    """Another text: a name that there is, one that cannot be, or the same a little longer or shorter."""
    odd = [
        "",
        ".",
        "..",
        "a/b",
        "../../x",
        "\x00",
        "a\nb",
        "é\U0001f4a9",
        "x" * 2000,
        value + "x",
        value[:-1],
        value.upper(),
        "{path}",
    ]
    return random.choice(odd) if random.random() < 0.5 or not pool.names else random.choice(pool.names)


def blob(value: bytes, random: Random, pool: Pool) -> bytes:
    """Other bytes: some flipped, cut or added, those of a field elsewhere, or a message's with one of its fields changed."""
    way = random.randrange(9)
    if way == 0:
        return value[: random.randrange(len(value) + 1)]
    if way == 1:
        return value + random.randbytes(random.choice([1, 4, 16, 1000]))
    if way == 2 and pool.blobs:
        return random.choice(pool.blobs)
    if way == 3:
        return random.choice([b"", b"\x00", b"\xff" * 16, bytes(16), bytes(1 << 20)])
    if way in (4, 5, 6) and (wired := wire(value, random)) is not None:
        return wired
    return flipped(value, random)


def flipped(value: bytes, random: Random) -> bytes:
    """The same but for a byte, or a word that is one of those that are easily believed."""
    if not value:
        return random.randbytes(4)
    data, at = bytearray(value), random.randrange(len(value))
    if random.random() < 0.5:
        data[at] ^= 1 << random.randrange(8)
        return bytes(data)
    size = random.choice([2, 4, 8])
    at -= at % size
    word = random.choice([0, 1, -1, 1 << (8 * size - 2), -(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1, len(value), 1 << 16])
    data[at : at + size] = (word % (1 << (8 * size))).to_bytes(size, "little")
    return bytes(data)


def wire(value: bytes, random: Random) -> bytes | None:
    """The bytes of a message of any type with one of its fields another; None where they are none."""
    spans = list(_spans(value))
    if not spans:
        return None
    start, at, stop, kind = random.choice(spans)
    head = value[start:at]
    if kind == 0:
        number = random.choice([0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 253_402_300_800_000_000, random.getrandbits(40)])
        body = _varint(number)
    elif kind == 2:
        held = value[at:stop]
        _, begin = _read_varint(held, 0)
        inner = held[begin:]
        new = random.choice([b"", b"\xff", flipped(inner, random), inner * 2, inner + b"x" * 3000, b"\xed\xa0\x80"])
        body = _varint(len(new)) + new
    else:
        body = random.randbytes(stop - at)
    way = random.random()
    if way < 0.15:
        return value[:start] + value[stop:]
    if way < 0.3:
        return value + value[start:stop] * random.choice([1, 50])
    return value[:start] + head + body + value[stop:]


def _spans(value: bytes) -> list[tuple[int, int, int, int]]:
    """Of each field where it begins, its content, where it ends, and its wire type; nothing where these bytes are no message."""
    found, at = [], 0
    try:
        while at < len(value):
            start = at
            tag, at = _read_varint(value, at)
            content, kind = at, tag & 7
            if kind == 0:
                _, at = _read_varint(value, at)
            elif kind == 2:
                length, at = _read_varint(value, at)
                at += length
            elif kind in (1, 5):
                at += 8 if kind == 1 else 4
            else:
                return []
            found.append((start, content, at, kind))
    except IndexError:
        return []
    return found if at == len(value) else []


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 70:
            raise IndexError(at)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _change_map(items: Any, field: Any, random: Random) -> str:
    of = field.message_type.fields_by_name["value"]
    if of.message_type is not None or random.random() < 0.3:
        items.clear()
        return "emptied"
    for number in range(random.choice([1, 1000])):
        items[f"k{number}"] = (
            random.choice(["", "x" * 100]) if of.cpp_type == _F.CPPTYPE_STRING else random.choice([0, -1, (1 << 31) - 1])
        )
    return f"{len(items)} entries"


def _change_repeated(items: Any, field: Any, random: Random, pool: Pool) -> str:
    before = list(items)
    way = random.randrange(6)
    if way == 0 or not before:
        added = _new(field, random, pool)
        items.append(added) if added is not None else None
        return "one more"
    if way == 1:
        del items[:]
        return "emptied"
    if way == 2:
        times = random.choice([1, 1, 2, 40, 1000])
        items.extend(random.choice(before) for _ in range(times))
        return f"{times} more of the same"
    if way == 3:
        random.shuffle(before)
    elif way == 4:
        del before[random.randrange(len(before))]
    elif (new := _new(field, random, pool)) is not None:
        before[random.randrange(len(before))] = new
    copies = [_copied(item) for item in before]
    del items[:]
    items.extend(copies)
    return ("shuffled", "one fewer", "one another")[way - 3]


def _copied(item: Any) -> Any:
    if not isinstance(item, Message):
        return item
    copy = type(item)()
    copy.CopyFrom(item)
    return copy


def _new(field: Any, random: Random, pool: Pool) -> Any:
    if field.message_type is not None:
        known = pool.messages.get(field.message_type.full_name, ())
        return _copied(random.choice(known)) if known else None
    empty: Any = "" if field.cpp_type == _F.CPPTYPE_STRING and field.type == _F.TYPE_STRING else 0
    return scalar(field, b"" if field.type == _F.TYPE_BYTES else empty, random, pool)


def _change_message(message: Message, value: Message, field: Any, random: Random, pool: Pool) -> str:
    if random.random() < 0.3:
        message.ClearExtension(field) if field.is_extension else message.ClearField(field.name)
        return "dropped"
    known = pool.messages.get(field.message_type.full_name, ())
    if known:
        value.CopyFrom(random.choice(known))
        return "another's"
    value.SetInParent()
    return "set to nothing"
