"""Arrays of numbers from NPZ files of unknown origin.

NumPy allocates what the header of an array claims before it reads a byte of it, and an archive of megabytes may unpack to
terabytes. So claims are compared with the sizes in the archive's directory, beyond which its reader does not read, and these with
a limit; and only numbers are read: neither objects, which would be code, nor texts.
"""

from __future__ import annotations

import zipfile
import zlib
from math import prod
from pathlib import Path

import numpy as np

from costate.core.arrays import Array
from costate.core.limits import excess

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""Version of the format -> the reader of its header."""


def read_npz(path: Path) -> dict[str, Array]:
    """Return the arrays of an NPZ file by name, as float64."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if over := excess("log_mb", sum(m.file_size for m in members) / 2**20):
                raise ValueError(over)
            return {m.filename.removesuffix(".npy"): _array(archive, m) for m in members}
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, OSError) and error.filename is not None:  # not there, or not to be read
            raise
        raise ValueError(f"{path} cannot be read as an NPZ file: {error}") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"{member.filename} has version {version} of the format; expected 1.0 or 2.0")
        shape, columns_first, kind = _HEADERS[version](file)
        if kind.kind not in "biuf":
            raise ValueError(f"{member.filename} holds {kind}; expected numbers")
        data = file.read()
    if len(data) != prod(shape) * kind.itemsize:
        raise ValueError(
            f"{member.filename} has {len(data):,} bytes; its header claims the shape {shape} of {kind}"[:200]
        )
    return np.frombuffer(data, kind).reshape(shape, order="F" if columns_first else "C").astype(np.float64)
