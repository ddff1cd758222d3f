"""Code of each kind of stage: a table from the kind to the function that writes it.

A writer gets the emitter, the op, and the slots of its inputs and outputs. A new kind of stage is one file in `ops/`, one here, a
row in this table and a test.
"""

from __future__ import annotations

from collections.abc import Mapping

from costate.kernel.codegen.stages.columns import write_columns
from costate.kernel.codegen.stages.cond import write_cond
from costate.kernel.codegen.stages.dense import write_common, write_dense
from costate.kernel.codegen.stages.fields.for_each import write_for_each
from costate.kernel.codegen.stages.fields.pack import write_pack, write_unpack
from costate.kernel.codegen.stages.map import write_map
from costate.kernel.codegen.stages.scan import write_scan
from costate.kernel.codegen.stages.simple import (
    write_add,
    write_custom,
    write_epsilon,
    write_finite,
    write_join,
    write_solve,
    write_straight,
    write_zeros,
)
from costate.kernel.codegen.stages.table import write_corners
from costate.kernel.codegen.stages.walk import write_walk
from costate.kernel.codegen.unit import Writer
from costate.kernel.ir.program import Op
from costate.kernel.ir.straight import Straight
from costate.kernel.ir.vector_ops import Add, Join, Zeros
from costate.kernel.ops.columns import Columns
from costate.kernel.ops.cond import Cond
from costate.kernel.ops.custom import Custom
from costate.kernel.ops.dense import Common, Dense
from costate.kernel.ops.epsilon import Epsilon
from costate.kernel.ops.fields.for_each import ForEach
from costate.kernel.ops.fields.krylov import ConjugateGradients
from costate.kernel.ops.fields.newton import Newton
from costate.kernel.ops.fields.pack import Pack, Unpack
from costate.kernel.ops.finite import Finite
from costate.kernel.ops.map import Map
from costate.kernel.ops.scan import Scan
from costate.kernel.ops.table import Corners
from costate.kernel.ops.walk import Walk

WRITERS: Mapping[type[Op], Writer] = {
    Straight: write_straight,
    Zeros: write_zeros,
    Add: write_add,
    Join: write_join,
    Finite: write_finite,
    Epsilon: write_epsilon,
    Custom: write_custom,
    Columns: write_columns,
    Cond: write_cond,
    Map: write_map,
    Common: write_common,
    Dense: write_dense,
    Walk: write_walk,
    Scan: write_scan,
    Corners: write_corners,
    ForEach: write_for_each,
    Pack: write_pack,
    Unpack: write_unpack,
    ConjugateGradients: write_solve,
    Newton: write_solve,
}
"""Kind of stage -> what writes it. (A slice is a view, without code.)"""
