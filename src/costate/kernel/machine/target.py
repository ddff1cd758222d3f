"""The machine code is made for: CPU, features, and how many samples one vector register holds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from costate.kernel.codegen.names import DTYPES, Names

SHORTEST = 16
"""Bytes of the shortest vectors there is code for."""


@dataclass(frozen=True)
class Target:
    """Everything about the machine that object code depends on."""

    triple: str
    cpu: str
    features: str
    register: int
    """Bytes of a vector register."""
    block: int = 0
    """Lanes of one element in memory, at least; 0: those of a register."""
    level: int = 1
    """Level of LLVM's code generator: 1 is as fast as 3 here and compiles sooner; 0 halves compiling, with the same bits."""

    def names(self, dtype: str) -> Names:
        """Return how vectors of a number type are spelled."""
        return Names(dtype, self.lanes(dtype), self.block)

    def lanes(self, dtype: str) -> int:
        """Return the number of lanes of a vector."""
        return self.register // DTYPES[dtype][1]

    def machine(self) -> llvm.TargetMachine:
        """Return LLVM's code generator for this target."""
        initialize()
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=self.level, reloc="pic", codemodel="default"
        )


@cache
def initialize() -> None:
    """Tell LLVM, once, to make its targets available."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def host() -> Target:
    """Return the CPU this process runs on.

    `COSTATE_VECTOR_BYTES` overrides the register size (16, 32 or 64), `COSTATE_CODE_LEVEL` the level of the code generator (0, 1).
    """
    return _host(os.environ.get("COSTATE_VECTOR_BYTES"), int(os.environ.get("COSTATE_CODE_LEVEL", Target.level)))


@cache
def _host(register_bytes: str | None, level: int) -> Target:
    initialize()
    features = llvm.get_host_cpu_features()
    register = 16
    if features.get("avx2"):
        register = 32
    if features.get("avx512f") and features.get("avx512dq") and features.get("avx512vl"):
        register = 64
    register = int(register_bytes or register)
    flags = features.flatten()
    if register == 64 and features.get("avx512f"):
        flags += ",-prefer-256-bit"
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), flags, register, level=level)
