"""C headers: the weights and the forward pass in one file of C99, for controllers on which nothing else runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from costate import __version__
from costate.train.network import Layer, Network
from costate.train.network.formula import ACTIVATIONS, in_c

WIDTH = 116
"""Width of a line of numbers."""


def write_c_header(network: Network, path: str | Path) -> Path:
    """Write `costate_policy(in, out)`; returns the path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(c_header(network), encoding="utf-8", errors="replace")
    return path


def c_header(n: Network) -> str:
    """Return the text of the header."""
    return TEMPLATE.format(
        version=__version__,
        about=_in_comment(n.about),
        layout=_layout("in", n.inputs) + " *\n" + _layout("out", n.outputs),
        inputs=len(n.inputs),
        widest=n.widest,
        outputs=len(n.outputs),
        body="\n".join([_scaling(n), *(_layer(k, layer) for k, layer in enumerate(n.layers))]),
        scale=_table("COSTATE_REAL", "scale", n.scale),
        offset=_table("COSTATE_REAL", "offset", n.offset),
    )


def _scaling(n: Network) -> str:
    """Return the code from inputs to the first values."""
    count = len(n.inputs)
    if (z := n.scaling) is None:
        return f"  for (i = 0; i < {count}; ++i) a[i] = in[i];"
    tops = [f"    if (i == {k} && x > {_number(t)}) x = {_number(t)};\n" for k, t in enumerate(z.top) if t < np.inf]
    return (
        "  {\n    /* Double: in float the rounding of the middle would be magnified by the gain. */\n"
        f"{_table('double', 'middle', z.middle)}\n{_table('double', 'gain', z.gain)}\n"
        f"  for (i = 0; i < {count}; ++i) {{\n    double x = (double)in[i];\n{''.join(tops)}"
        "    a[i] = (COSTATE_REAL)((x - middle[i]) * gain[i]);\n  }\n  }"
    )


def _layer(number: int, layer: Layer) -> str:
    """Return the code of a layer: from the values a to the values a; b is room for the sums of a linear layer."""
    if layer.kind in ACTIVATIONS:
        return f"  for (i = 0; i < n; ++i) a[i] = {in_c(ACTIVATIONS[layer.kind].formula, 'a[i]', layer.number)};"
    assert layer.weight is not None and layer.bias is not None
    tables = f"{_table('COSTATE_REAL', 'weight', layer.weight.ravel())}\n{_table('COSTATE_REAL', 'bias', layer.bias)}"
    if layer.kind == "norm":
        return f"  {{\n{tables}\n{NORM.format(n=len(layer.bias), epsilon=_number(layer.number))}  }}"
    rows, columns = layer.weight.shape
    return f"  {{\n{tables}\n{LINEAR.format(rows=rows, columns=columns)}  }}\n  n = {rows};"


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
    return repr(float(value))


def _numbers(values: np.ndarray) -> str:
    lines, line = [], " "
    for text in map(_number, values):
        if len(line) + len(text) + 2 > WIDTH:
            lines.append(line)
            line = " "
        line += f" {text},"
    return "\n".join([*lines, line.rstrip(",")])


LINEAR = """\
  for (k = 0; k < {rows}; ++k) {{
    /* Eight sums side by side: less rounding than one long one, and they fit vector units. */
    COSTATE_REAL part[8] = {{0}};
    for (i = 0; i < {columns}; ++i) part[i & 7] += weight[k * {columns} + i] * a[i];
    b[k] = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7])) + bias[k];
  }}
  for (i = 0; i < {rows}; ++i) a[i] = b[i];
"""

NORM = """\
  COSTATE_REAL mean = 0, square = 0;
  for (i = 0; i < {n}; ++i) mean += a[i] / {n};
  for (i = 0; i < {n}; ++i) square += (a[i] - mean) * (a[i] - mean) / {n};
  square = COSTATE_SQRT(square + (COSTATE_REAL){epsilon});
  for (i = 0; i < {n}; ++i) a[i] = (a[i] - mean) / square * weight[i] + bias[i];
"""

TEMPLATE = """\
/* A trained policy, written by costate {version}. C99, no allocation, no state; needs <math.h> (-lm).
 *
 * {about}.
 *
 *   float in[{inputs}], out[{outputs}];
 *   costate_policy(in, out);
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
#define COSTATE_BY_SIZE(name, x) \\
  (sizeof(COSTATE_REAL) == sizeof(float) ? (COSTATE_REAL)name##f((float)(x)) : (COSTATE_REAL)name((double)(x)))
#define COSTATE_TANH(x) COSTATE_BY_SIZE(tanh, x)
#define COSTATE_EXP(x) COSTATE_BY_SIZE(exp, x)
#define COSTATE_LOG(x) COSTATE_BY_SIZE(log, x)
#define COSTATE_SQRT(x) COSTATE_BY_SIZE(sqrt, x)
#define COSTATE_MAX(x, y) ((x) > (y) ? (x) : (y))
#define COSTATE_MIN(x, y) ((x) < (y) ? (x) : (y))

enum {{ COSTATE_INPUTS = {inputs}, COSTATE_WIDEST = {widest}, COSTATE_OUTPUTS = {outputs} }};

static inline void costate_policy(const COSTATE_REAL in[{inputs}], COSTATE_REAL out[{outputs}])
{{
{scale}
{offset}
  COSTATE_REAL a[{widest}], b[{widest}];
  int i, k, n = {inputs};

  (void)n;
{body}
  for (k = 0; k < {outputs}; ++k) out[k] = offset[k] + scale[k] * a[k];
}}

#endif
"""
