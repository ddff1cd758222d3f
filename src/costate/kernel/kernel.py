"""Kernels: named functions of batched tensors, compiled and differentiable."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import torch
from torch.autograd import forward_ad

from costate.core.eager import eager
from costate.core.fork import cached_property, lock, tracing
from costate.core.numbers import promoted
from costate.kernel import torch_op
from costate.kernel.calls.general import GeneralCall
from costate.kernel.calls.native import NativeCode
from costate.kernel.calls.quick import QuickCall
from costate.kernel.codegen.driver import Layout
from costate.kernel.ir.program import Program
from costate.kernel.ir.straight import as_program
from costate.kernel.link import native_code
from costate.kernel.machine.jit import assembly
from costate.kernel.machine.target import SHORTEST, Target, host
from costate.kernel.numpy_call import Bound, NumpyCall
from costate.kernel.passes.finite_flag import with_finite_flag
from costate.kernel.recipe import Derived, Primal, Recipe
from costate.kernel.report import Report, listing, report
from costate.kernel.signature import Signature, Spec
from costate.kernel.symbols import check_symbols, flat_function, identifier, specs_of, with_adjoint


@eager
class Kernel:
    """A compiled function.

        k = Kernel("spring", inputs={"x": x, "p": p}, outputs={"f": f, "e": e})   # CasADi SX in and out
        out = k(x=X, p=P)                                                          # tensors (..., n); out.f, out.e

    A CasADi column of n elements is a tensor (..., n), a matrix of r x c is (..., r, c). Leading dimensions are the batch; they
    broadcast. A number () will do for (1,). Number types may differ: they are promoted. Compilation happens on first use, per
    number type, and is remembered on disk.

    Args:
        name: For messages and reports.
        inputs: Name -> SX symbols.
        outputs: Name -> SX expressions of the inputs.
        check_finite: Add an output `finite` (..., 1): 1 if everything the sample's stages produced was finite, else 0.
        adjoint: Gradients of your own, where they are cheaper than those of the outputs: (symbols, expressions) with symbols for
            every input, every output (as computed by the forward pass) and every output's seed, in this order, and expressions for
            the gradients of every input.
    """

    @tracing
    def __init__(
        self,
        name: str,
        inputs: Mapping[str, ca.SX],
        outputs: Mapping[str, ca.SX],
        *,
        check_finite: bool = False,
        adjoint: tuple[Sequence[ca.SX], Sequence[ca.SX]] | None = None,
    ):
        check_symbols(name, inputs)
        program = as_program(flat_function(name, list(inputs.values()), list(outputs.values())))
        if adjoint is not None:
            program = with_adjoint(program, flat_function(f"{name}_adjoint", *adjoint))
        self._set_up(_primal(Signature(name, specs_of(inputs), specs_of(outputs)), program, check_finite))

    @classmethod
    def of_program(
        cls,
        name: str,
        program: Program,
        inputs: Sequence[Spec],
        outputs: Sequence[Spec],
        check_finite: bool = False,
    ) -> Kernel:
        """Return a kernel from a program of stages; `ProgramBuilder` makes them."""
        return cls.of_recipe(_primal(Signature(name, tuple(inputs), tuple(outputs)), program, check_finite))

    @classmethod
    def of_recipe(cls, recipe: Recipe) -> Kernel:
        """Make the kernel of a recipe."""
        kernel = cls.__new__(cls)
        kernel._set_up(recipe)
        return kernel

    def _set_up(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._base: Kernel | None = None
        self._target: Target | None = None
        self.length = 0
        self._name(recipe.signature, recipe.given)

    def _name(self, signature: Signature, given: tuple[int, ...]) -> None:
        self.signature = signature
        self.name = self.signature.name
        self.given = given
        self._result = namedtuple("Result", [identifier(s.name) for s in self.signature.outputs])  # type: ignore[misc]
        self._code: dict[str, NativeCode] = {}
        self._quick = QuickCall(self.signature, self.code, self.length)
        self._general = GeneralCall(self.signature, self.code, self.length)
        self._derived: dict[Any, Kernel] = {}
        self._sizes: dict[int, Kernel] = {}
        self._lock = lock()

    # --- calls ----------------------------------------------------------------------------------------------------

    def __call__(self, **inputs: torch.Tensor) -> Any:
        """Compute the outputs as a named tuple of tensors (..., *shape). Differentiable in every input."""
        return self._result(*self.apply(self.signature.pick(inputs)))

    def apply(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """Call the kernel with its inputs in order, which are promoted to one number type (`costate.core.numbers`)."""
        found = self.planned(tensors)
        return self._apply_any(tensors) if found is None else found

    def planned(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
        """Call the kernel with inputs like those of the last call, in types and shapes; return None for others."""
        plan = self._quick.plain
        try:
            if plan is None or not plan.same(*tensors) or forward_ad._current_level >= 0:
                return None
        except TypeError:  # another number of them
            return None
        if plan.recorded and torch.is_grad_enabled():
            return torch_op.recorded(self, plan, tensors)
        return plan.run(tensors)

    def _apply_any(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """Call the kernel with inputs that nothing is known of."""
        if torch_op.in_transform():
            return torch_op.apply(self, promoted(tensors))
        if not _wants_gradient(tensors):
            return self._quick.run(tensors) or self.run(promoted(tensors))
        tensors = torch_op.unwrapped(promoted(tensors))
        plan = self._quick.plan_of(tensors)
        return torch_op.apply(self, tensors) if plan is None else torch_op.recorded(self, plan, tensors)

    def run(self, tensors: Sequence[torch.Tensor], batches: torch_op.Batches | None = None) -> list[torch.Tensor]:
        """Evaluate without recording gradients. batches: leading dimensions that outputs are summed to (see `torch_op`)."""
        try:
            quick = self._quick.run(tensors, batches)
            return self._general.run(tensors, batches) if quick is None else quick
        except RuntimeError:  # such tensors have no memory of their own
            if not any(torch_op.is_grads_batched(t) for t in tensors):
                raise
            return torch_op.run_batched(self, tensors, batches)

    @cached_property
    def numpy(self) -> Callable[..., Any]:
        """Function of named NumPy arrays, without gradients: the quick way for single samples. It returns the outputs as a named
        tuple of arrays."""
        return NumpyCall(self).function

    def bind(self, **inputs: np.ndarray) -> Bound:
        """Fix the arrays: the returned object reads them and writes its outputs anew at each call, in about a microsecond.

        step = k.bind(x=x, p=p)       # float64 or float32 arrays, C-contiguous, all with the same batch
        x[:] = measurement; step(); use(step.outputs.f)
        """
        return Bound(self, self.signature.pick(inputs))

    # --- derivatives ----------------------------------------------------------------------------------------------

    def vjp(self, wrt: str | Sequence[str] | None = None, of: str | Sequence[str] | None = None) -> Kernel:
        """Return the kernel of gradients. Inputs: those of this kernel, and `<output>_bar` for the outputs in `of`; outputs
        `<input>_bar` for the inputs in `wrt`. Default: all."""
        s = self.signature
        return self.derivative("vjp", s.positions(s.inputs, wrt, "input"), s.positions(s.outputs, of, "output"))

    def jvp(self, wrt: str | Sequence[str] | None = None) -> Kernel:
        """Return the kernel of tangents. Inputs: those of this kernel and `<input>_dot` for the inputs in `wrt`; outputs
        `<output>_dot`."""
        s = self.signature
        return self.derivative("jvp", s.positions(s.inputs, wrt, "input"), ())

    def hvp(self, wrt: str | Sequence[str] | None = None, of: str | Sequence[str] | None = None) -> Kernel:
        """Return the kernel of Hessian-vector products of <of_bar, of>: inputs as for `vjp`, then `<input>_dot` for `wrt`; outputs
        `<input>_bar_dot`."""
        back = self.vjp(wrt, of)
        names = [self.signature.inputs[k].name for k in self.signature.positions(self.signature.inputs, wrt, "input")]
        return back.jvp(names)

    def jacobian(self, of: str, wrt: str) -> Callable[..., torch.Tensor]:
        """Return a function of the same inputs that returns d of / d wrt, shape (..., n_of, n_wrt), from a kernel of its own."""
        s = self.signature
        k = self.derivative("jacobian", (s.index(s.inputs, wrt, "input"),), (s.index(s.outputs, of, "output"),))
        return lambda **inputs: k(**inputs).jacobian

    def derivative(self, kind: str, wrt: tuple[int, ...], of: tuple[int, ...]) -> Kernel:
        """Return the derivative kernel of a kind (`recipe.Derived` has them), made once."""
        if self._base is not None:
            return self._base.derivative(kind, wrt, of).sized(self.length)
        with self._lock:
            key = kind, wrt, of
            if key not in self._derived:
                self._derived[key] = Kernel.of_recipe(Derived(self._recipe, kind, wrt, of))
            return self._derived[key]

    def sized(self, length: int) -> Kernel:
        """Return this kernel, whose sequences have a dynamic length (`DYNAMIC`), for sequences of the given length. The code is
        shared."""
        if not self.signature.is_dynamic:
            return self
        with self._lock:
            kernel = self._sizes.get(length)
            if kernel is None:
                kernel = Kernel.__new__(Kernel)
                kernel._recipe, kernel._base, kernel.length = self._recipe, self, length
                kernel._name(self.signature.sized(length), self.given)
                while len(self._sizes) >= 64:
                    self._sizes.pop(next(iter(self._sizes)))
                self._sizes[length] = kernel
            return kernel

    @cached_property
    def narrow(self) -> Kernel:
        """This kernel with the shortest vectors, for one sample or two at a time: their values take less of the cache, so large
        kernels run in half the time. The results are the same, bit for bit."""
        if self._base is not None:
            return self._base.narrow.sized(self.length)
        kernel = Kernel.of_recipe(self._recipe)
        kernel._target = replace(host(), register=SHORTEST)
        return kernel

    # --- code -----------------------------------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The stages this kernel is compiled from."""
        return self._recipe.build()

    @property
    def key(self) -> str:
        """Digest of everything the code depends on, but for number type and machine."""
        return self._recipe.key_with(())

    @property
    def layout(self) -> Layout:
        """Rows of the tensors that the code reads and writes."""
        return Layout(tuple(s.rows for s in self.signature.inputs), tuple(s.rows for s in self.signature.outputs))

    def code(self, dtype: str = "f64") -> NativeCode:
        """Return the machine code for a number type ("f64", "f32"): from memory, from disk, or compiled now."""
        found = self._code.get(dtype)
        if found is not None:
            return found
        if self._base is not None:
            return self._base.code(dtype)
        with self._lock:
            if dtype not in self._code:
                self._code[dtype] = native_code(self._recipe, self.layout, dtype, self._target)
            return self._code[dtype]

    def report(self, dtype: str = "f64", batch: int | None = None) -> Report:
        """Measure operations, workspace, code size, compile time, and the rate reached on this machine, with 4,096 samples, or with
        one for a kernel over fields."""
        return report(self, dtype, batch)

    def assembly(self, dtype: str = "f64") -> str:
        """Return the machine code as text."""
        return "\n".join(assembly(text, host()) for text in listing(self.program, self.layout, host(), dtype))

    def llvm(self, dtype: str = "f64") -> str:
        """Return the LLVM IR as text."""
        return "\n".join(listing(self.program, self.layout, host(), dtype))

    def __repr__(self) -> str:
        return f"Kernel {self.signature}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._recipe, self.length)


def _wants_gradient(tensors: Sequence[torch.Tensor]) -> bool:
    if torch.is_grad_enabled():
        for t in tensors:
            if isinstance(t, torch.Tensor) and t.requires_grad:
                return True
    return False


def _restore(recipe: Recipe, length: int) -> Kernel:
    return Kernel.of_recipe(recipe).sized(length)


def _primal(signature: Signature, program: Program, check_finite: bool) -> Primal:
    if not check_finite:
        return Primal(signature, program)
    flagged = Signature(signature.name, signature.inputs, (*signature.outputs, Spec("finite", (1,))))
    return Primal(flagged, with_finite_flag(program))
