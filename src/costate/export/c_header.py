"""C headers: the weights and the forward pass in one file of C99, for controllers on which nothing else runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from costate import __version__
from costate.export.network import Network

WIDTH = 116
"""Of a line of numbers."""


def write_c_header(network: Network, path: str | Path) -> Path:
    """Write `costate_policy(in, out)`; returns the path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(c_header(network))
    return path


def c_header(n: Network) -> str:
    """The text of the header."""
    return TEMPLATE.format(
        version=__version__,
        about=n.about,
        layout=_layout("in", n.inputs) + " *\n" + _layout("out", n.outputs),
        inputs=len(n.gain),
        hidden=n.hidden,
        outputs=len(n.scale),
        last=len(n.gain) - 1,
        horizon=_number(n.top[-1]),
        middle=_numbers(n.middle),
        gain=_numbers(n.gain),
        W1=_numbers(n.W1.ravel()),
        b1=_numbers(n.b1),
        W2=_numbers(n.W2.ravel()),
        b2=_numbers(n.b2),
        scale=_numbers(n.scale),
        offset=_numbers(n.offset),
    )


def _layout(name: str, entries: Iterable[tuple[str, str]]) -> str:
    return "".join(f" *   {f'{name}[{k}]':<8} {what} [{unit}]\n" for k, (what, unit) in enumerate(entries))


def _number(value: float) -> str:
    """The shortest decimal that is read back as this very number, in double and, for what is a float32, in float."""
    return repr(float(value))


def _numbers(values: np.ndarray) -> str:
    lines, line = [], " "
    for text in map(_number, values):
        if len(line) + len(text) + 2 > WIDTH:
            lines.append(line)
            line = " "
        line += f" {text},"
    return "\n".join([*lines, line.rstrip(",")])


TEMPLATE = """\
/* A trained policy, written by costate {version}. C99, no allocation, no state; needs tanh from <math.h> (-lm).
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
#define COSTATE_TANH(x) (sizeof(COSTATE_REAL) == sizeof(float) ? (COSTATE_REAL)tanhf((float)(x)) : (COSTATE_REAL)tanh(x))

enum {{ COSTATE_INPUTS = {inputs}, COSTATE_HIDDEN = {hidden}, COSTATE_OUTPUTS = {outputs} }};

static inline void costate_policy(const COSTATE_REAL in[{inputs}], COSTATE_REAL out[{outputs}])
{{
  /* Double: in float the rounding of the middle would be magnified by the gain. */
  static const double middle[{inputs}] = {{
{middle}
  }};
  static const double gain[{inputs}] = {{
{gain}
  }};
  static const COSTATE_REAL inner_weight[{hidden} * {inputs}] = {{
{W1}
  }};
  static const COSTATE_REAL inner_bias[{hidden}] = {{
{b1}
  }};
  static const COSTATE_REAL outer_weight[{outputs} * {hidden}] = {{
{W2}
  }};
  static const COSTATE_REAL outer_bias[{outputs}] = {{
{b2}
  }};
  static const COSTATE_REAL scale[{outputs}] = {{
{scale}
  }};
  static const COSTATE_REAL offset[{outputs}] = {{
{offset}
  }};
  static const double horizon = {horizon};
  COSTATE_REAL observation[{inputs}], hidden[{hidden}];
  int i, k;

  for (i = 0; i < {inputs}; ++i) {{
    double x = (double)in[i];
    if (i == {last} && x > horizon) x = horizon;
    observation[i] = (COSTATE_REAL)((x - middle[i]) * gain[i]);
  }}
  for (k = 0; k < {hidden}; ++k) {{
    COSTATE_REAL sum = inner_bias[k];
    for (i = 0; i < {inputs}; ++i) sum += inner_weight[k * {inputs} + i] * observation[i];
    hidden[k] = COSTATE_TANH(sum);
  }}
  for (k = 0; k < {outputs}; ++k) {{
    /* Eight sums side by side: less rounding than one long one, and they fit vector units. */
    COSTATE_REAL part[8] = {{0}}, sum;
    for (i = 0; i < {hidden}; ++i) part[i & 7] += outer_weight[k * {hidden} + i] * hidden[i];
    sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7])) + outer_bias[k];
    out[k] = offset[k] + scale[k] * COSTATE_TANH(sum);
  }}
}}

#endif
"""
