"""Handlers: functions in machine code that XLA calls, and that call a kernel. Nothing of Python runs in between.

XLA passes a frame with the addresses and shapes of all buffers (xla/ffi/api/c_api.h in jaxlib, API 0.x; offsets are below). A
handler writes the words that a kernel's entry reads (`costate.kernel.codegen.driver`), and calls it. Large batches are cut into
parts, which threads of XLA's own pool compute; the caller computes parts, too, until none is left, so that it never waits for a
busy pool.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from itertools import count
from typing import Any

import jax

from costate.kernel import Kernel
from costate.kernel.calls.native import HEAD, NEVER, THREAD_GAIN_OPS, NativeCode
from costate.kernel.codegen.driver import ONE_LEVEL
from costate.kernel.codegen.emit import WORDS_BEFORE, WORDS_PER_TENSOR
from costate.kernel.codegen.rows import GROUP
from costate.kernel.machine.jit import Library, object_code
from costate.kernel.machine.target import host
from costate.kernel.signature import Spec

EXTENSION, API, CONTEXT, ARGUMENTS, RESULTS = 8, 16, 24, 72, 112
"""Bytes from the start of a frame to: its extension, the table of functions, the context, arrays of arguments and results."""
VERSION, ERROR, SCHEDULE, THREADS = 32, 48, 136, 144
"""Bytes from the start of the table to: the version, and functions that make an error, schedule a task, count the threads."""
DATA, RANK, DIMENSIONS = 24, 32, 40
"""Bytes from the start of a buffer to its address, rank and shape."""
JOB = 5
"""Words of a job before those of the kernel: owners, next part, parts done, parts, samples."""
BYTES = {"f64": 8, "f32": 4}
_numbers = count()
_kept: list[object] = []  # XLA may call what is registered at any time


@cache
def target(kernel: Kernel, dtype: str, checked: str) -> str:
    """Return the name under which XLA knows a kernel. checked: what to say if an output is not finite; "": nothing is checked."""
    code = kernel.code(dtype)
    imports = {"entry": code.address} | _system()
    library = Library([object_code(_text(kernel, dtype, code, checked), host())], ["handler"], imports)
    name = f"costate_{next(_numbers)}"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(library.address("handler")), platform="cpu")
    _kept.extend([code, library])
    return name


@cache
def _system() -> dict[str, int]:
    """Return addresses of functions of the C library."""
    library = ctypes.CDLL(None)
    names = ("malloc", "free", "memcpy", "sched_yield", "pthread_getspecific", "pthread_setspecific")
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names}


@cache
def _room_key() -> int:
    """Return the key under which every thread keeps its workspace; it is freed when the thread ends."""
    key = ctypes.c_ulong(0)
    library: Any = ctypes.CDLL(None)
    if library.pthread_key_create(ctypes.byref(key), ctypes.cast(library.free, ctypes.c_void_p)):
        raise OSError("the system has no thread-specific memory left (pthread_key_create)")
    return key.value


class _Lines:
    """Instructions of a function in the making."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.lines: list[str] = []

    def new(self, text: str) -> str:
        """Add an instruction; return the name of its value."""
        name = f"%{self.prefix}{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def load(self, kind: str, base: str, offset: int) -> str:
        """Load a value some bytes behind an address."""
        return self.new(f"load {kind}, ptr {self.new(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def store(self, word: int, value: str | int) -> None:
        """Write a word of the kernel."""
        self.lines.append(f"  store i64 {value}, ptr {self.new(f'getelementptr i64, ptr %w, i64 {word}')}")


def _text(kernel: Kernel, dtype: str, code: NativeCode, checked: str) -> str:
    """Return the IR of `ptr handler(ptr frame)`."""
    s, width = kernel.signature, BYTES[dtype]
    specs = (*s.inputs, *s.outputs)
    b, n = _Lines("run"), len(s.inputs)
    arrays = b.load("ptr", "%frame", ARGUMENTS), b.load("ptr", "%frame", RESULTS)
    buffers = [b.load("ptr", arrays[k >= n], 8 * (k - n * (k >= n))) for k in range(len(specs))]
    leads = [b.new(f"call i64 @lead(ptr {x}, i64 {len(s.shape)})") for x, s in zip(buffers, specs, strict=True)]
    batch = b.new(f"add i64 {leads[n]}, 0")
    for word, value in enumerate([0, batch, 0, NEVER, kernel.length]):
        b.store(word, value)
    for k, (x, spec) in enumerate(zip(buffers, specs, strict=True)):
        own = b.new(f"icmp eq i64 {leads[k]}, {batch}")
        step = b.new(f"select i1 {own}, i64 {spec.size * width}, i64 0")
        row = spec.shape[-1] * width if len(spec.shape) == 2 else 0
        for j, value in enumerate([b.load("i64", x, DATA), ONE_LEVEL, 0, step, row, 0]):
            b.store(WORDS_BEFORE + WORDS_PER_TENSOR * k + j, value)
    work = code.artifact.work + kernel.length * code.artifact.step_work
    words = WORDS_BEFORE + WORDS_PER_TENSOR * len(specs)
    values = {
        "TRIPLE": host().triple,
        "KEYTYPE": "i64" if sys.platform == "darwin" else "i32",
        "KEY": _room_key(),
        "ROOM": code.workspace_bytes,
        "ALLOCATED": code.workspace_bytes + 2 * HEAD + 64,
        "HEAD": HEAD,
        "WORDS": words,
        "BYTES": 8 * words,
        "JOB": JOB,
        "JOBBYTES": 8 * (JOB + words),
        "GROUP": GROUP,
        "MANY": max(GROUP + 1, -(-THREAD_GAIN_OPS // max(work, 1))) if not code.helper else 1 << 62,
        "BATCH": batch,
        "BODY": "\n".join(b.lines),
        "CHECK": _check(buffers[n:], s.outputs, batch) if checked else "  ret ptr null",
        "MESSAGE": _string(checked),
        "LENGTH": len(checked.encode()) + 1,
        "EXTENSION": EXTENSION,
        "API": API,
        "CONTEXT": CONTEXT,
        "VERSION": VERSION,
        "ERROR": ERROR,
        "SCHEDULE": SCHEDULE,
        "THREADS": THREADS,
        "RANK": RANK,
        "DIMENSIONS": DIMENSIONS,
        "NUMBER": {"f64": "double", "f32": "float"}[dtype],
    }
    text = TEMPLATE
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def _check(buffers: list[str], outputs: tuple[Spec, ...], batch: str) -> str:
    """Return instructions that look for what is not finite in the outputs."""
    b, found = _Lines("check"), "false"
    for x, spec in zip(buffers, outputs, strict=True):
        total = b.new(f"mul i64 {batch}, {spec.size}")
        wrong = b.new(f"call i1 @wrong(ptr {b.load('ptr', x, DATA)}, i64 {total})")
        found = b.new(f"or i1 {found}, {wrong}")
    return "\n".join(b.lines) + f"\n  br i1 {found}, label %bad, label %good"


def _string(text: str) -> str:
    return "".join(f"\\{byte:02x}" for byte in text.encode()) + "\\00"


TEMPLATE = """target triple = "@TRIPLE@"
@message = internal constant [@LENGTH@ x i8] c"@MESSAGE@"
declare void @entry(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @sched_yield()
declare ptr @pthread_getspecific(@KEYTYPE@)
declare i32 @pthread_setspecific(@KEYTYPE@, ptr)

; Samples of a buffer whose last dimensions belong to one.
define internal i64 @lead(ptr %b, i64 %event) {
entry:
  %pr = getelementptr i8, ptr %b, i64 @RANK@
  %rank = load i64, ptr %pr
  %end = sub i64 %rank, %event
  %pd = getelementptr i8, ptr %b, i64 @DIMENSIONS@
  %dims = load ptr, ptr %pd
  br label %head
head:
  %i = phi i64 [0, %entry], [%i1, %body]
  %n = phi i64 [1, %entry], [%n1, %body]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %p = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %p
  %n1 = mul i64 %n, %d
  %i1 = add i64 %i, 1
  br label %head
done:
  ret i64 %n
}

; Whether one of n numbers is not finite.
define internal i1 @wrong(ptr %x, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%i1, %body]
  %sum = phi @NUMBER@ [0.0, %entry], [%sum1, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %p = getelementptr @NUMBER@, ptr %x, i64 %i
  %v = load @NUMBER@, ptr %p
  %zero = fsub @NUMBER@ %v, %v
  %sum1 = fadd @NUMBER@ %sum, %zero
  %i1 = add i64 %i, 1
  br label %head
done:
  %is = fcmp uno @NUMBER@ %sum, 0.0
  ret i1 %is
}

; This thread's workspace, large enough for the kernel: its first word is its size.
define internal ptr @room() {
entry:
  %old = call ptr @pthread_getspecific(@KEYTYPE@ @KEY@)
  %none = icmp eq ptr %old, null
  br i1 %none, label %grow, label %look
look:
  %size = load i64, ptr %old
  %enough = icmp uge i64 %size, @ROOM@
  br i1 %enough, label %use, label %grow
grow:
  call void @free(ptr %old)
  %made = call ptr @malloc(i64 @ALLOCATED@)
  store i64 @ROOM@, ptr %made
  %told = call i32 @pthread_setspecific(@KEYTYPE@ @KEY@, ptr %made)
  br label %use
use:
  %p = phi ptr [%old, %look], [%made, %grow]
  %a = ptrtoint ptr %p to i64
  %b = add i64 %a, 143
  %c = and i64 %b, -64
  %r = inttoptr i64 %c to ptr
  %team = getelementptr i8, ptr %r, i64 -8
  store i64 0, ptr %team
  ret ptr %r
}

; Compute some of the samples that words describe.
define internal void @range(ptr %words, i64 %begin, i64 %end) {
  %w = alloca [@WORDS@ x i64], align 16
  %c = call ptr @memcpy(ptr %w, ptr %words, i64 @BYTES@)
  store i64 %begin, ptr %w
  %pe = getelementptr i64, ptr %w, i64 1
  store i64 %end, ptr %pe
  %room = call ptr @room()
  %pw = getelementptr i64, ptr %w, i64 2
  store ptr %room, ptr %pw
  call void @entry(ptr %w)
  ret void
}

; Compute parts of a job until none is left.
define internal void @drain(ptr %job) {
entry:
  %pn = getelementptr i64, ptr %job, i64 1
  %pd = getelementptr i64, ptr %job, i64 2
  %pp = getelementptr i64, ptr %job, i64 3
  %pb = getelementptr i64, ptr %job, i64 4
  %words = getelementptr i64, ptr %job, i64 @JOB@
  %parts = load i64, ptr %pp
  %batch = load i64, ptr %pb
  %more = add i64 %batch, @GROUP@
  %less = sub i64 %more, 1
  %groups = sdiv i64 %less, @GROUP@
  br label %head
head:
  %k = atomicrmw add ptr %pn, i64 1 seq_cst
  %some = icmp slt i64 %k, %parts
  br i1 %some, label %body, label %done
body:
  %k1 = add i64 %k, 1
  %g = mul i64 %groups, %k
  %g1 = mul i64 %groups, %k1
  %h = sdiv i64 %g, %parts
  %h1 = sdiv i64 %g1, %parts
  %begin = mul i64 %h, @GROUP@
  %far = mul i64 %h1, @GROUP@
  %over = icmp sgt i64 %far, %batch
  %end = select i1 %over, i64 %batch, i64 %far
  call void @range(ptr %words, i64 %begin, i64 %end)
  %d = atomicrmw add ptr %pd, i64 1 seq_cst
  br label %head
done:
  ret void
}

; Give a job up; the last owner frees it.
define internal void @release(ptr %job) {
  %left = atomicrmw sub ptr %job, i64 1 seq_cst
  %last = icmp eq i64 %left, 1
  br i1 %last, label %free, label %done
free:
  call void @free(ptr %job)
  br label %done
done:
  ret void
}

define internal void @task(ptr %job) {
  call void @drain(ptr %job)
  call void @release(ptr %job)
  ret void
}

define ptr @handler(ptr %frame) {
  %pe = getelementptr i8, ptr %frame, i64 @EXTENSION@
  %ext = load ptr, ptr %pe
  %asked = icmp ne ptr %ext, null
  %pa = getelementptr i8, ptr %frame, i64 @API@
  %api = load ptr, ptr %pa
  %count = alloca i64
  %args = alloca [5 x i64], align 8
  %w = alloca [@WORDS@ x i64], align 16
  br i1 %asked, label %meta, label %run
meta:  ; XLA asks for the version of the interface: tell it its own
  %pv = getelementptr i8, ptr %api, i64 @VERSION@
  %version = load i64, ptr %pv
  %pm = getelementptr i8, ptr %ext, i64 24
  %md = load ptr, ptr %pm
  %po = getelementptr i8, ptr %md, i64 24
  store i64 %version, ptr %po
  %pt = getelementptr i8, ptr %md, i64 32
  store i32 0, ptr %pt
  ret ptr null
run:
@BODY@
  %p1 = getelementptr i64, ptr %args, i64 1
  %p2 = getelementptr i64, ptr %args, i64 2
  %p3 = getelementptr i64, ptr %args, i64 3
  %p4 = getelementptr i64, ptr %args, i64 4
  store i64 0, ptr %p1
  %pc = getelementptr i8, ptr %frame, i64 @CONTEXT@
  %ctx = load ptr, ptr %pc
  store ptr %ctx, ptr %p2
  %many = icmp sge i64 @BATCH@, @MANY@
  br i1 %many, label %ask, label %alone
ask:
  store i64 32, ptr %args
  store ptr %count, ptr %p3
  store i64 1, ptr %count
  %pn = getelementptr i8, ptr %api, i64 @THREADS@
  %threads_of = load ptr, ptr %pn
  %failed = call ptr %threads_of(ptr %args)
  %threads = load i64, ptr %count
  %several = icmp sgt i64 %threads, 1
  br i1 %several, label %share, label %alone
alone:
  call void @range(ptr %w, i64 0, i64 @BATCH@)
  br label %after
share:
  %job = call ptr @malloc(i64 @JOBBYTES@)
  %j1 = getelementptr i64, ptr %job, i64 1
  %j2 = getelementptr i64, ptr %job, i64 2
  %j3 = getelementptr i64, ptr %job, i64 3
  %j4 = getelementptr i64, ptr %job, i64 4
  %j5 = getelementptr i64, ptr %job, i64 @JOB@
  %parts = mul i64 %threads, 4
  store i64 %threads, ptr %job
  store i64 0, ptr %j1
  store i64 0, ptr %j2
  store i64 %parts, ptr %j3
  store i64 @BATCH@, ptr %j4
  %copied = call ptr @memcpy(ptr %j5, ptr %w, i64 @BYTES@)
  store i64 40, ptr %args
  store ptr @task, ptr %p3
  store ptr %job, ptr %p4
  %ps = getelementptr i8, ptr %api, i64 @SCHEDULE@
  %schedule = load ptr, ptr %ps
  br label %next
next:
  %i = phi i64 [1, %share], [%i1, %scheduled]
  %more = icmp slt i64 %i, %threads
  br i1 %more, label %one, label %compute
one:
  %i1 = add i64 %i, 1
  %refused = call ptr %schedule(ptr %args)
  %fine = icmp eq ptr %refused, null
  br i1 %fine, label %scheduled, label %fewer
fewer:
  call void @release(ptr %job)
  br label %scheduled
scheduled:
  br label %next
compute:
  call void @drain(ptr %job)
  br label %wait
wait:
  %done = load atomic i64, ptr %j2 seq_cst, align 8
  %all = icmp sge i64 %done, %parts
  br i1 %all, label %end, label %pause
pause:
  %yielded = call i32 @sched_yield()
  br label %wait
end:
  call void @release(ptr %job)
  br label %after
after:
@CHECK@
bad:
  store i64 32, ptr %args
  store ptr @message, ptr %p2
  store i64 13, ptr %p3
  %px = getelementptr i8, ptr %api, i64 @ERROR@
  %make = load ptr, ptr %px
  %error = call ptr %make(ptr %args)
  ret ptr %error
good:
  ret ptr null
}
"""
