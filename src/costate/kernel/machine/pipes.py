"""Messages between processes, over pipes: a length, then as many bytes."""

from __future__ import annotations

import struct
from typing import IO


def send(stream: IO[bytes], data: bytes) -> None:
    """Write a message: its length, then its bytes."""
    left = memoryview(struct.pack("<q", len(data)) + data)
    while left:
        left = left[stream.write(left) :]
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """Read a message; raise EOFError at the end of the stream."""
    return _read(stream, *struct.unpack("<q", _read(stream, 8)))


def _read(stream: IO[bytes], size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = stream.read(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
