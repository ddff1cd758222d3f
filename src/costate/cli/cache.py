"""`costate cache show`, `costate cache clear`: the compiled kernels kept on disk."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Show:
    """Place of the cache, and how full it is."""


@dataclass(frozen=True)
class Clear:
    """Remove every entry. Kernels are compiled again when they are next used."""


def run(options: Show | Clear) -> None:
    from costate.kernel.machine.cache import cache_info, clear_cache

    if isinstance(options, Clear):
        removed = clear_cache()
        print(f"removed {removed} {'entry' if removed == 1 else 'entries'}")
        return
    info = cache_info()
    print(f"path     {info.path}")
    print(f"entries  {info.entries}")
    print(f"size     {_mebibytes(info.bytes)} of at most {_mebibytes(info.limit)}")


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
