"""C headers: the weights and the forward pass in one file of C99, for controllers on which nothing else runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from costate import __version__
from costate.export.policy import as_network
from costate.train.network import Graph, Network, Step
from costate.train.network.primitives import PRIMITIVES

WIDTH = 116
"""Width of a line of numbers."""


def write_c_header(policy: Any, path: str | Path) -> Path:
    """Write `costate_policy(in, out)`; returns the path.

    policy: A network, or any module of usual layers (see `as_network`).
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(c_header(as_network(policy)), encoding="utf-8", errors="replace")
    return path


def c_header(n: Network) -> str:
    """Return the text of the header."""
    code, memory = _Code(n.graph), len(n.memory)
    return TEMPLATE.format(
        version=__version__,
        about=_in_comment(n.about),
        layout=_layout("in", n.inputs) + " *\n" + _layout("out", n.outputs),
        state=REMEMBERS.format(memory=memory) if memory else "no state",
        inputs=len(n.inputs),
        outputs=len(n.outputs),
        memory=f", COSTATE_MEMORY = {memory}" if memory else "",
        declared=f", COSTATE_REAL memory[{memory}]" if memory else "",
        passed=", memory" if memory else "",
        begin=BEGIN.format(start=_table("COSTATE_REAL", "start", n.memory), memory=memory) if memory else "",
        scale=_table("COSTATE_REAL", "scale", n.scale),
        offset=_table("COSTATE_REAL", "offset", n.offset),
        tables="\n".join(code.tables),
        buffers=f"  COSTATE_REAL {', '.join(f'{name}[{size}]' for name, size in code.buffers)};",
        body="\n".join([_scaling(n, code), *_recalled(code), *code.statements]),
        result=code.at(n.graph.outputs[0], "i"),
        kept="\n".join(_kept(code)),
    )


def _scaling(n: Network, code: _Code) -> str:
    """Return the code from inputs to the first values."""
    count, to = len(n.inputs), code.at(n.graph.inputs[0][0], "i")
    if (z := n.scaling) is None:
        return f"  for (i = 0; i < {count}; ++i) {to} = in[i];"
    tops = [f"    if (i == {k} && x > {_number(t)}) x = {_number(t)};\n" for k, t in enumerate(z.top) if t < np.inf]
    return (
        "  {\n    /* Double: in float the rounding of the middle would be magnified by the gain. */\n"
        f"{_table('double', 'middle', z.middle)}\n{_table('double', 'gain', z.gain)}\n"
        f"  for (i = 0; i < {count}; ++i) {{\n    double x = (double)in[i];\n{''.join(tops)}"
        f"    {to} = (COSTATE_REAL)((x - middle[i]) * gain[i]);\n  }}\n  }}"
    )


def _recalled(code: _Code) -> Iterator[str]:
    """Yield the code that reads the parts of the memory."""
    place = 0
    for name, size in code.graph.inputs[1:]:
        yield f"  for (i = 0; i < {size}; ++i) {code.at(name, 'i')} = memory[{place} + i];"
        place += size


def _kept(code: _Code) -> Iterator[str]:
    """Yield the code that writes the parts of the next memory."""
    place = 0
    for name, (_, size) in zip(code.graph.outputs[1:], code.graph.inputs[1:], strict=True):
        yield f"  for (i = 0; i < {size}; ++i) memory[{place} + i] = {code.at(name, 'i')};"
        place += size


class _Code:
    """The statements of a graph, the tables of its constants, and buffers for its values, which they share in turn."""

    def __init__(self, graph: Graph):
        self.graph = graph
        many = [name for name, c in graph.constants.items() if c.size > 1]
        self._tables = {name: f"k{k}" for k, name in enumerate(many)}
        self.tables = [_table("COSTATE_REAL", self._tables[name], graph.constants[name].ravel()) for name in many]
        self._root: dict[str, str] = {}
        for s in graph.steps:
            if s.kind == "reshape":  # the same numbers, in the same buffer
                self._root[s.out] = self._root.get(s.inputs[0], s.inputs[0])
        read = [name for s in graph.steps if s.kind != "reshape" for name in s.inputs]
        self._left = Counter(self._root.get(name, name) for name in (*read, *graph.outputs))
        self._sizes: list[int] = []
        self._free: list[int] = []
        self._place: dict[str, int] = {}
        for name, size in graph.inputs:
            self._reserve(name, size)
        self.statements = [self._statement(s) for s in graph.steps if s.kind != "reshape"]
        self.buffers = [(f"b{k}", size) for k, size in enumerate(self._sizes)]
        """Names and sizes of the buffers."""

    def at(self, name: str, index: str) -> str:
        """Return the expression of an element of a value or a constant."""
        name = self._root.get(name, name)
        if name in self._place:
            return f"b{self._place[name]}[{index}]"
        if name in self._tables:
            return f"{self._tables[name]}[{index}]"
        return f"(COSTATE_REAL){_number(float(self.graph.constants[name].ravel()[0]))}"

    def _statement(self, s: Step) -> str:
        shapes = self.graph.shapes
        # A formula may write where it reads, if what it reads there is not needed any more.
        early = [n for n in s.inputs if s.kind == "pointwise" and prod(shapes[n]) == prod(s.shape)]
        for name in early:
            self._done(name)
        self._reserve(s.out, prod(s.shape))
        text = PRIMITIVES[s.kind].c(s, shapes, self.at)
        for name in s.inputs:
            if name not in early:
                self._done(name)
        return f"  {{\n  {text}\n  }}" if "static const" in text else f"  {text}"

    def _reserve(self, name: str, size: int) -> None:
        """Give a value a buffer: a free one that is large enough, the largest free one, or a new one."""
        fitting = sorted(self._free, key=lambda k: (self._sizes[k] < size, abs(self._sizes[k] - size)))
        if fitting:
            self._free.remove(fitting[0])
        else:
            self._sizes.append(0)
        place = fitting[0] if fitting else len(self._sizes) - 1
        self._sizes[place] = max(self._sizes[place], size)
        self._place[name] = place

    def _done(self, name: str) -> None:
        """Note that a value was read; after the last time its buffer is free."""
        name = self._root.get(name, name)
        self._left[name] -= 1
        if name in self._place and self._left[name] == 0:
            self._free.append(self._place[name])


def _table(kind: str, name: str, values: np.ndarray) -> str:
    return f"  static const {kind} {name}[{len(values)}] = {{\n{_numbers(values)}\n  }};"


def _layout(name: str, entries: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f" *   {f'{name}[{k}]':<8} {_in_comment(f'{what} [{unit}]')}\n" for k, (what, unit) in enumerate(entries)
    )


def _in_comment(text: str) -> str:
    """Return a text, such as the name of a joint, in one line that neither ends a comment nor begins one."""
    line = "".join(c if c.isprintable() and c != "\\" else " " for c in text)
    return line.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")


def _number(value: float) -> str:
    """Return the shortest decimal that is read back as this very number, in double and, for what is a float32, in float."""
    if not np.isfinite(value):
        return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))


def _numbers(values: np.ndarray) -> str:
    lines, line = [], " "
    for text in map(_number, values):
        if len(line) + len(text) + 2 > WIDTH:
            lines.append(line)
            line = " "
        line += f" {text},"
    return "\n".join([*lines, line.rstrip(",")])


REMEMBERS = """\
a state of {memory} numbers
 * in `memory`, which `costate_policy_begin(memory)` sets when an episode begins"""

BEGIN = """\
static inline void costate_policy_begin(COSTATE_REAL memory[{memory}])
{{
{start}
  int i;

  for (i = 0; i < {memory}; ++i) memory[i] = start[i];
}}

"""

TEMPLATE = """\
/* A trained policy, written by costate {version}. C99, no allocation, {state}; needs <math.h> (-lm).
 *
 * {about}.
 *
 *   float in[{inputs}], out[{outputs}];
 *   costate_policy(in{passed}, out);
 *
{layout} *
 * Scaling is inside: `in` are measurements, `out` are commands. Define COSTATE_REAL as double before including this file
 * to compute in double precision.
 */
#ifndef COSTATE_POLICY_H
#define COSTATE_POLICY_H

#include <math.h>

#ifndef COSTATE_REAL
#define COSTATE_REAL float
#endif
#define COSTATE_CALL(name, x) \\
  (sizeof(COSTATE_REAL) == sizeof(float) ? (COSTATE_REAL)name##f((float)(x)) : (COSTATE_REAL)name((double)(x)))
#define COSTATE_CALL2(name, x, y) \\
  (sizeof(COSTATE_REAL) == sizeof(float) ? (COSTATE_REAL)name##f((float)(x), (float)(y)) \\
                                         : (COSTATE_REAL)name((double)(x), (double)(y)))
/* What is not a number stays visible. */
#define COSTATE_MAX(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define COSTATE_MIN(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))

enum {{ COSTATE_INPUTS = {inputs}, COSTATE_OUTPUTS = {outputs}{memory} }};

{begin}static inline void costate_policy(const COSTATE_REAL in[{inputs}]{declared}, COSTATE_REAL out[{outputs}])
{{
{scale}
{offset}
{tables}
{buffers}
  int i, j;

  (void)j;
{body}
  for (i = 0; i < {outputs}; ++i) out[i] = offset[i] + scale[i] * {result};
{kept}
}}

#endif
"""
