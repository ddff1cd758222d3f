"""Vector elementary functions, as LLVM IR: each lane is one sample.

Every function is accurate to a few units in the last place over its whole domain (docs/accuracy.md), computes each lane
from that lane alone, and uses no fast-math: a result has the same bits at every position, batch size and vector width.
"""

from costate.kernel.vecmath.module import FUNCTIONS, math_module, symbol

__all__ = ["FUNCTIONS", "math_module", "symbol"]
