"""Code that `torch.compile` runs as it is: compiled kernels and symbolic physics have nothing in them that it could trace."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

from torch._C._dynamo import eval_frame

T = TypeVar("T")
WHY = "Costate runs machine code of its own, with gradients of its own"


def eager(thing: T) -> T:
    """Mark a function, or all methods of a class, as one graph break of `torch.compile`: it is called, not traced.

    This is what `torch.compiler.disable` does, without importing torch's compiler (a second) and without a call in between.
    """
    for function in _functions(thing):
        function._torchdynamo_disable = True
        function._torchdynamo_disable_msg = WHY
        _skip(function)
    return thing


def _functions(thing: Any) -> list[Any]:
    """Return the functions of a class, accessors of properties not among them, or a function itself."""
    if isinstance(thing, FunctionType):
        return [thing]
    found = [getattr(each, "__func__", each) for each in vars(thing).values()]
    return [each for each in found if isinstance(each, FunctionType)]


def _skip(function: Any) -> None:
    """Let the compiler leave calls of a function alone, and all that they call."""
    if hasattr(eval_frame, "set_code_exec_strategy"):
        skip = eval_frame._FrameAction.SKIP
        eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(skip, skip))
    elif hasattr(eval_frame, "skip_code"):  # torch before 2.7
        eval_frame.skip_code(function.__code__)  # pyright: ignore[reportAttributeAccessIssue]
