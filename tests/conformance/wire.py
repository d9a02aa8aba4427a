"""Reading protobuf without a definition: what is on the wire, whatever a client makes of it."""

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Number and value of every field of a message, in order."""
    return list(_fields(data))


def payload(data: bytes, number: int) -> bytes | None:
    """The last length-delimited field of that number, None if there is none."""
    found = [value for field, value in fields(data) if field == number and isinstance(value, bytes)]
    return found[-1] if found else None


def with_unknown_fields(data: bytes) -> bytes:
    """The message with fields nobody has defined: number 99 as a number, 98 as text, 97 as a double."""
    text = b"\x92\x06\x06future"
    return data + b"\x98\x06\x2a" + text + b"\x89\x06" + bytes(8)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        else:
            length = {_FIXED64: 8, _FIXED32: 4}[kind]
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
