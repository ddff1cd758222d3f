"""How the compiler works: one small function taken through every pass, down to the machine code and back.

    python docs/how_the_compiler_works.py

This page runs: what it shows is what the compiler does on this machine, and it ends by checking the result against CasADi.
Each section calls the same functions as `costate.kernel` itself, in the order of `compile.py` and `link.py`.
"""

from __future__ import annotations

import ctypes
import textwrap

import casadi as ca
import numpy as np
import torch

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.calls.descriptors import describe
from costate.kernel.calls.native import NEVER
from costate.kernel.calls.native import workspace as aligned_workspace
from costate.kernel.codegen import from_casadi
from costate.kernel.codegen.chunks import cut
from costate.kernel.codegen.driver import Layout
from costate.kernel.codegen.emit import WORDS_BEFORE
from costate.kernel.codegen.lower import ChunkWriter
from costate.kernel.codegen.names import Names
from costate.kernel.codegen.tape import Tape
from costate.kernel.codegen.unit import Unit
from costate.kernel.compile import jobs, lower_program, main_text
from costate.kernel.ir.derive import vjp
from costate.kernel.ir.program import Program
from costate.kernel.ir.prune import prune
from costate.kernel.ir.straight import Straight
from costate.kernel.link import math_library
from costate.kernel.machine.jit import Library, assembly, object_code
from costate.kernel.machine.target import Target, host
from costate.kernel.machine.worker import job_text
from costate.kernel.machine.workers import make_job
from costate.kernel.passes.optimize import optimize
from costate.kernel.vecmath import symbol

LENGTH, GRAVITY = 0.5, 9.81  # m, m/s^2


# --- how the page is printed ------------------------------------------------------------------------------------------


def title(text: str) -> None:
    print(f"\n\n{text}\n{'=' * len(text)}\n")


def say(text: str) -> None:
    print(textwrap.fill(" ".join(text.split()), 110), "\n")


def show(code: str, lines: int = 60) -> None:
    rows = code.strip("\n").splitlines()
    more = [f"... and {len(rows) - lines} lines more"] if len(rows) > lines else []
    print(textwrap.indent("\n".join(rows[:lines] + more), "    "), "\n")


def stages_as_text(program: Program) -> str:
    """One line per stage: outputs = Kind(inputs)."""
    names = {v: f"in{k}" for k, v in enumerate(program.inputs)}
    rows = []
    for s in program.stages:
        names.update({v: f"v{len(names) + k}" for k, v in enumerate(s.outputs)})
        made, used = (", ".join(f"{names[v]}[{v.size}]" for v in vs) for vs in (s.outputs, s.inputs))
        what = s.op.fn.name() if isinstance(s.op, Straight) else ""
        rows.append(f"{made} = {type(s.op).__name__} {what}({used})")
    return "\n".join([*rows, f"return {', '.join(names[v] for v in program.outputs)}"])


def tape_as_text(tape: Tape) -> str:
    rows = []
    for k, (op, *args) in enumerate(tape.instructions):
        if op == "const":
            rows.append(f"%{k} = {float.fromhex(args[0])!r}")
        elif op == "input":
            rows.append(f"%{k} = input {args[0]}, element {args[1]}")
        else:
            rows.append(f"%{k} = {op} {', '.join(f'%{a}' for a in args)}")
    return "\n".join(rows + [f"output {o}, element {e} <- %{v}" for o, e, v in tape.outputs])


# --- the passes -------------------------------------------------------------------------------------------------------


def the_function() -> tuple[ca.Function, ca.Function]:
    title("1. The function")
    say("""A pendulum on a weak spring that becomes stiff and damped beyond a stop. It comes in two pieces, so that there is
        something to fuse: where the tip is, and from there the torque on the joint.""")
    q, stop = ca.SX.sym("q"), ca.SX.sym("stop")
    position = ca.vertcat(LENGTH * ca.sin(q), -LENGTH * ca.cos(q))
    locate = ca.Function("locate", [q], [position])
    p, v = ca.SX.sym("p", 2), ca.SX.sym("v")
    depth = p[0] - stop
    push = ca.if_else(depth > 0, 100 * depth + 2 * depth * v, 5 * depth)
    torque = ca.Function("torque", [p, v, stop], [-GRAVITY * p[0] - 0.1 * v + push * p[1]])
    say("CasADi holds each of them as a list of instructions on registers:")
    show(torque.str(True))
    return locate, torque


def the_program(locate: ca.Function, torque: ca.Function) -> tuple[ProgramBuilder, Program]:
    title("2. A program")
    say("""The compiler's own representation is a program: stages over vectors, each assigned once. Here both stages are
        straight-line functions; loops (Scan), index tables (Map), branches (Cond) and so on would be further lines.""")
    b = ProgramBuilder("pendulum")
    q, v, stop = b.input("q", 1), b.input("v", 1), b.input("stop", 1)
    (p,) = b.call(locate, q)
    b.output("torque", b.call(torque, p, v, stop)[0])
    show(stages_as_text(b.program()))
    say("""Every kind of stage can be evaluated slowly in NumPy (`program.evaluate`): that is its definition, and tests
        compare compiled code with it.""")
    return b, b.program()


def the_gradient(program: Program) -> Program:
    title("3. The derivative is a program, too")
    say("""Reverse mode walks the stages twice: forward to know the values, then backward, where every stage adds stages that
        turn the seeds of its outputs into gradients of its inputs. Straight-line stages ask CasADi. The last input, in3, is
        the seed; wanted are the gradients of in0 (q) and in2 (stop).""")
    gradient = vjp(program, wrt=[0, 2], of=[0])
    show(stages_as_text(gradient))
    say("""Because the result is an ordinary program, derivatives of any order come for free. Its key for the disk cache was
        known before this work was done: a digest of the parent's key, of the kind, and of what is differentiated.""")
    return gradient


def pruned_and_fused(gradient: Program) -> Program:
    title("4. Prune and fuse")
    say("""Stages nobody reads are dropped (here the torque itself went when the derivative was made), then neighbouring
        straight-line stages become one function, so that common subexpressions of forward and backward meet.""")
    assert stages_as_text(prune(gradient)) == stages_as_text(gradient)
    fused = optimize(gradient)
    show(stages_as_text(fused))
    return fused


def the_tape(fused: Program) -> Tape:
    title("5. The tape")
    (stage,) = fused.stages
    assert isinstance(stage.op, Straight)
    fn = stage.op.fn
    say(
        """CasADi's instructions become a tape of single assignments: instruction k defines value k. Five small passes:"""
    )
    instructions, outputs = from_casadi._number_values(fn)
    rows = [("CasADi's instructions", fn.n_instructions()), ("equal computations get one number", len(instructions))]
    passes = {
        "if_else(c, a, b), in CasADi a sum, becomes one select": lambda: from_casadi._fold_selects(instructions),
        "a b + c in one rounding, where a b has no other use": lambda: from_casadi._fuse_multiply_adds(
            instructions, outputs
        ),
        "sin and cos of one angle share their range reduction": lambda: from_casadi._pair_sines(instructions),
    }
    for what, run in passes.items():
        run()
        rows.append((what, len(from_casadi._drop_unused(list(instructions), outputs).instructions)))
    tape = from_casadi._drop_unused(instructions, outputs)
    show("\n".join(f"{n:4} left: {what}" for what, n in rows))
    say(f"""Multiply-adds are formed here because LLVM may not: which ones are fused decides the bits of a result. The whole
        tape, {tape.n_ops} of which are arithmetic:""")
    show(tape_as_text(tape))
    assert tape == from_casadi.tape_of(fn)
    return tape


def the_chunks(tape: Tape) -> None:
    title("6. Chunks")
    say("""LLVM takes superlinear time in the length of a basic block, so tapes are cut into chunks of 1,000 operations, and
        worker processes compile them side by side. Other kernels of the process link what is compiled already. Values that
        cross a cut travel through slots of a workspace, which are reused as soon as the last reader is done. This tape fits
        into one chunk; cut every 8 operations it would be:""")
    chunks, slots = cut("demo", tape, n_inputs=4, n_outputs=2, size=8)
    rows = [f"{c.name}: reads slots {[*c.loads.values()]}, writes slots {[*c.saves.values()]}" for c in chunks]
    show("\n".join([*rows, f"workspace: {slots} vectors"]))


def the_llvm(fused: Program, layout: Layout, target: Target) -> tuple[Unit, int]:
    title("7. LLVM IR")
    lanes = target.lanes("f64")
    say(f"""Each value is now a vector of {lanes} doubles, and each lane is one sample of the batch. There are no fast-math
        flags. Comparisons are kept as two masks, true and unordered, so that a selection on a NaN gives NaN.""")
    unit, workspace = lower_program(fused, layout, target, "f64")
    (piece,) = unit.pieces.values()
    show(ChunkWriter(piece.chunks[0], Names("f64", lanes)).text(), 70)
    say("""Around the chunks is one loop over blocks of samples. A block reads its samples from row-major tensors, transposed
        into vectors, runs the whole program, and writes the results back. The last block repeats its last sample, so a
        sample's bits don't depend on who its neighbours are.""")
    show(unit.functions["entry"])
    return unit, workspace


def the_assembly(unit: Unit, target: Target) -> None:
    title("8. Assembly")
    say(
        f"""LLVM's code generator makes this for {target.cpu}: no calls but those to the vector functions, no branches."""
    )
    (piece,) = unit.pieces.values()
    text = assembly(job_text(make_job(piece.chunks, target, "f64")), target)
    (name,) = piece.names
    body = text[text.index(f"{name}:") :]
    rows = [r for r in body.splitlines() if not r.strip().startswith((".cfi", ".p2align", "#"))]
    show("\n".join(rows), 80)


def linked(unit: Unit, target: Target) -> Library:
    title("9. Object code, linked")
    texts = [main_text(unit, target), *(job_text(make_job(chunks, target, "f64")) for _, chunks in jobs(unit))]
    images = [object_code(text, target) for text in texts]
    sincos = symbol("sincos", target.lanes("f64"), "f64")
    library = Library(images, ["entry"], {sincos: math_library(target, "f64").address(sincos)})
    say(f"""{len(images)} object files, {sum(map(len, images)):,} bytes together: this is what the cache on disk keeps, with a
        checksum. Linking resolves {sincos}, which all kernels share, and gives an address to call:
        0x{library.address("entry"):x}.""")
    return library


def called(library: Library, workspace: int, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    title("10. Called")
    batch = inputs[0].shape[:1]
    outputs = [torch.empty(*batch, 1, dtype=torch.float64) for _ in range(2)]
    tensors = [describe(t, batch, event=1)[0] for t in (*inputs, *outputs)]
    say(f"""The entry takes one pointer to 64-bit words: the range of samples, the workspace, a flag that could end the call, and
        six words per tensor. The stop is one number for all {batch.numel()} samples: its stride is 0, nothing is copied.""")
    show("\n".join(f"{name:9} data {t[0]:#x}, stride {t[3]} bytes" for name, t in zip(NAMES, tensors, strict=True)))
    _, address, _ = aligned_workspace(workspace)
    first = [0, batch.numel(), address, NEVER, *[0] * (WORDS_BEFORE - 4)]
    words = np.array([*first, *(word for t in tensors for word in t)], np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("entry"))(words.ctypes.data)
    return outputs


def checked(
    locate: ca.Function,
    torque: ca.Function,
    kernel: Kernel,
    inputs: list[torch.Tensor],
    outputs: list[torch.Tensor],
) -> None:
    title("11. Checked")
    say("""Independently: CasADi differentiates the whole and evaluates it in its own virtual machine.""")
    x = [ca.SX.sym(name) for name in NAMES[:4]]
    total = x[3] * torque(locate(x[0]), x[1], x[2])
    reference = ca.Function("reference", x, [ca.gradient(total, x[0]), ca.gradient(total, x[2])])
    samples = [t.expand(inputs[0].shape).numpy().T for t in inputs]
    for name, y, expected in zip(NAMES[4:], outputs, reference.map(inputs[0].shape[0]).call(samples), strict=True):
        expected = np.array(expected)
        error = np.max(np.abs(y.numpy().T - expected) / np.maximum(np.abs(expected), 1.0))
        show(f"{name:9} largest difference to CasADi's own evaluator, relative above 1: {error:.1e}")
        assert error < 1e-14, f"{name} differs from CasADi by {error}"

    q, v, stop, seed = inputs
    q, stop = q.clone().requires_grad_(), stop.clone().requires_grad_()
    kernel(q=q, v=v, stop=stop).torque.backward(seed)
    assert q.grad is not None and stop.grad is not None
    assert torch.equal(q.grad, outputs[0]), "Kernel and the passes by hand should give the same bits"
    assert torch.allclose(stop.grad, outputs[1].sum(0), rtol=1e-12)
    say("""The same function as a Kernel, differentiated by torch's backward, gives the same bits for q; the gradient of the
        shared stop comes summed over the batch, in a fixed order.""")

    _same_bits_alone(kernel, inputs, outputs)


def _same_bits_alone(kernel: Kernel, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> None:
    q, v, stop, seed = inputs
    alone = kernel.vjp(["q"])(q=q[5], v=v[5], stop=stop, torque_bar=seed[5]).q_bar
    assert torch.equal(alone, outputs[0][5])
    broken = kernel(q=torch.tensor([float("nan")], dtype=torch.float64), v=v[0], stop=stop).torque
    assert broken.isnan().all()
    say("""Sample 5 computed alone has the bits it has in the batch, and a NaN in q arrives in the torque although the
        selection might have hidden it.""")


def the_loop(torque: ca.Function) -> None:
    title("12. The same, with a loop")
    say("""A scan repeats a body with a carried state. Its gradient: the states are stored (or taken from the output, if they
        are one), and a second scan, reversed, runs the body's own gradient, which recomputes the body. Few lines, whatever the
        number of steps:""")
    x, stop = ca.SX.sym("x", 2), ca.SX.sym("stop")
    tip = ca.vertcat(LENGTH * ca.sin(x[0]), -LENGTH * ca.cos(x[0]))
    v = x[1] + 1e-3 * torque(tip, x[1], stop)
    b = ProgramBuilder("swing")
    start, wall = b.input("x", 2), b.input("stop", 1)
    (final,), _, _ = b.scan(
        ca.Function("step", [x, stop], [ca.vertcat(x[0] + 1e-3 * v, v)]), 1000, start, shared=[wall]
    )
    b.output("final", final)
    show(stages_as_text(optimize(vjp(b.program(), wrt=[0], of=[0]))))


NAMES = ("q", "v", "stop", "seed", "q_bar", "stop_bar")


def main() -> None:
    locate, torque = the_function()
    builder, program = the_program(locate, torque)
    fused = pruned_and_fused(the_gradient(program))
    the_chunks(the_tape(fused))
    target = host()
    layout = Layout(inputs=((1, 1),) * 4, outputs=((1, 1),) * 2)  # (rows, numbers per row)
    unit, workspace = the_llvm(fused, layout, target)
    the_assembly(unit, target)
    library = linked(unit, target)
    generator = torch.Generator().manual_seed(0)
    q, v, seed = (torch.randn(37, 1, dtype=torch.float64, generator=generator) for _ in range(3))
    inputs = [q, v, torch.tensor([0.1], dtype=torch.float64), seed]
    checked(locate, torque, builder.kernel(), inputs, called(library, workspace * target.register, inputs))
    the_loop(torque)


if __name__ == "__main__":
    main()
