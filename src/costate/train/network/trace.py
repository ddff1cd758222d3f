"""Tracing: `torch.export` writes down what a module does, and rows of `operations.table` say it again in steps of a graph."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.fx.node import map_aggregate
from torch.utils._pytree import tree_leaves, tree_map_only

from costate.train.network.builder import Builder, UnsupportedError, Value
from costate.train.network.graph import Graph
from costate.train.network.operations.table import LAYERS, ROWS

BATCH = 1009
"""Samples of the traced call: a prime number that no layer has, so that the batch is known from its size."""
SILENT = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size")
"""Operations that only check."""


def traced(module: nn.Module, sizes: Sequence[int]) -> Graph:
    """Return the graph of a module that takes tensors (batch, size) and gives a tensor (batch, m), or several.

    The module is traced as in evaluation: dropout does nothing, batch normalisation uses its running statistics.
    """
    program = _exported(module, sizes)
    b = Builder(BATCH)
    known: dict[Any, Any] = {}
    given = iter([Value(f"x{k}", (n,)) for k, n in enumerate(sizes)])
    inputs: list[Value] = []
    for node, role in zip(program.graph.nodes, program.graph_signature.input_specs, strict=False):
        if role.kind.name == "USER_INPUT":
            inputs.append(next(given))
            known[node] = inputs[-1]
        else:
            tensor = _weights(program, role.target)
            known[node] = tensor.to(torch.float64, copy=True) if tensor.is_floating_point() else tensor.clone()
            if tensor.is_floating_point():
                b.constant(known[node], role.target)
    for node in program.graph.nodes:
        if node.op == "call_function":
            known[node] = _lowered(b, node, known)
    (last,) = next(node for node in program.graph.nodes if node.op == "output").args
    graph = b.graph(inputs, _results(module, last, known))
    _check(module, sizes, graph)
    return graph


def _check(module: nn.Module, sizes: Sequence[int], graph: Graph) -> None:
    """Raise an error unless the graph gives what the module gives, at random inputs, to the module's own precision."""
    dtype = _dtype(module)
    generator = torch.Generator().manual_seed(0)
    x = [torch.randn(7, n, dtype=torch.float64, generator=generator).to(dtype) for n in sizes]
    with _evaluating(module):
        results = module(*x)
    found = graph(*[t.double().numpy() for t in x])
    allowed = 1e4 * torch.finfo(dtype).eps
    for wanted, have in zip(tree_leaves(results), found, strict=True):
        value = torch.from_numpy(have.copy()).expand(wanted.shape)
        if not torch.allclose(value, wanted.double(), rtol=allowed, atol=allowed, equal_nan=True):
            raise UnsupportedError(
                f"{type(module).__name__} computes other numbers when it is called again: does it draw random numbers, keep "
                "something from call to call, or decide by the values it computes?"
            )


def _dtype(module: nn.Module) -> torch.dtype:
    first = next((p for p in module.parameters() if p.is_floating_point()), None)
    return torch.get_default_dtype() if first is None else first.dtype


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode for a while; its layers have the modes they had afterwards."""
    modes = [(m, m.training) for m in module.modules()]
    try:
        module.eval()
        with torch.no_grad():
            yield
    finally:
        for each, mode in modes:
            each.training = mode


def _exported(module: nn.Module, sizes: Sequence[int]) -> Any:
    """Return the module as torch writes it down, in evaluation mode."""
    examples = tuple(torch.zeros(BATCH, n, dtype=_dtype(module)) for n in sizes)
    try:
        with warnings.catch_warnings(), _evaluating(module):
            warnings.simplefilter("ignore")  # torch warns of its own code
            return torch.export.export(module, examples, strict=False).run_decompositions({})
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise UnsupportedError(
            f"{type(module).__name__} cannot be followed by torch.export with inputs of {', '.join(map(str, sizes))} numbers: "
            f"{said[0]}; an exported policy must not decide by the values it computes, and must take a batch (B, n)"
        ) from error


def _weights(program: Any, target: str) -> torch.Tensor:
    found = program.state_dict.get(target)
    return (program.constants[target] if found is None else found).detach()


def _lowered(b: Builder, node: Any, known: dict[Any, Any]) -> Any:
    """Return what a node gives: values of the graph, or constants."""
    args, kwargs = map_aggregate((node.args, dict(node.kwargs)), lambda a: known.get(a, a))
    if node.target is operator.getitem:
        return args[0][args[1]]
    name = getattr(node.target, "overloadpacket", node.target).__name__
    if name in SILENT:
        return None
    if not _has_values((args, kwargs)):
        return _folded(node.target, args, kwargs)
    row = ROWS.get(name)
    if row is None:
        raise UnsupportedError(f"{_place(node)}: '{name}' has no NumPy, ONNX and C form; use {LAYERS}")
    try:
        result = row(b, *_arguments(node.target, args, kwargs))
    except UnsupportedError as error:
        raise UnsupportedError(f"{_place(node)}: {error}") from error
    _check_shapes(node, result)
    return result


def _folded(target: Any, args: Any, kwargs: Any) -> Any:
    """Return an operation on constants, in double precision."""
    result = target(*args, **kwargs)
    return tree_map_only(torch.Tensor, lambda t: t.double() if t.is_floating_point() else t, result)


def _arguments(target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Return the arguments in the order of the schema, with defaults where they are not given."""
    schema = target._schema.arguments
    return [args[k] if k < len(args) else kwargs.get(a.name, a.default_value) for k, a in enumerate(schema)]


def _has_values(tree: Any) -> bool:
    return any(isinstance(leaf, Value) for leaf in tree_leaves(tree))


def _check_shapes(node: Any, result: Any) -> None:
    """Raise an error unless the steps give the shape that torch gives: else samples would mix."""
    wanted = node.meta.get("val")
    for value, tensor in zip(*((r if isinstance(r, list | tuple) else [r]) for r in (result, wanted)), strict=False):
        if isinstance(value, Value) and tuple(tensor.shape) != (BATCH, *value.shape):
            raise UnsupportedError(
                f"{_place(node)} gives a tensor of shape {_said(tensor.shape)} where one sample has {value.shape}: "
                "each sample of the batch must be computed by itself"
            )


def _said(shape: Sequence[int]) -> str:
    return f"({', '.join('batch' if n == BATCH else str(n) for n in shape)})"


def _place(node: Any) -> str:
    """Return the layer in which an operation stands, in words."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return "the module"
    path, kind = stack[-1]
    kind = kind if isinstance(kind, str) else kind.__name__
    return f"layer '{path}' ({kind.split('.')[-1]})" if path else kind.split(".")[-1]


def _results(module: nn.Module, last: Any, known: dict[Any, Any]) -> list[Any]:
    results = [known.get(r, r) for r in last]
    for r in results:
        if not isinstance(r, Value | torch.Tensor) or (isinstance(r, Value) and r.rank != 1):
            found = _said((BATCH, *r.shape)) if isinstance(r, Value) else repr(r)
            raise UnsupportedError(f"{type(module).__name__} gives {found}; expected tensors (batch, m)")
    return results
