"""Numbers of a source tree: lines per package, files per folder, lengths of functions, isinstance of kinds, lazy imports.

python -m benchmarks.house_numbers src/costate
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

KINDS = {
    "Hard",
    "PGS",
    "Newton",
    "Compliant",
    "Torque",
    "Motor",
    "Affine",
    "DCMotor",
    "Explicit",
    "VelocityServo",
    "PositionServo",
    "Box",
    "Sphere",
    "Capsule",
    "Cylinder",
    "Ellipsoid",
    "Plane",
    "Hull",
    "Socket",
    "Field",
    "Heights",
    "Grid",
    "Union",
    "Intersection",
    "Difference",
    "Offset",
    "Moved",
}
"""Classes of contact models, actuators and shapes: kinds that a table or a method should tell apart."""
FRAGMENTS = ("Of ", "What ", "Where ", "Whether ", "How ", "Which ", "[")


LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Count the lines that hold code: no blank lines, comments or docstrings."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


def main(root: Path) -> None:
    lines: Counter[str] = Counter()
    code: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    lazy: Counter[str] = Counter()
    fragments: Counter[str] = Counter()
    lengths: list[int] = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        package = path.relative_to(root).parts[0]
        lines[package] += len(text.splitlines())
        code[package] += code_lines(text)
        folders[str(path.parent.relative_to(root))] += 1
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)
                for inner in ast.walk(node):
                    if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("costate"):
                        lazy[package] += 1
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node.args[1])}
                if names & KINDS:
                    kinds[package] += 1
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                fragments[package] += str(node.value.value).lstrip().startswith(FRAGMENTS)
    lengths.sort()
    print(f"lines: {sum(lines.values())}", dict(lines.most_common()))
    print(f"lines of code: {sum(code.values())}", dict(code.most_common()))
    print(f"folders over 15 files: {[(f, n) for f, n in folders.items() if n > 15]}")
    p90 = lengths[int(0.9 * len(lengths))]
    print(f"functions: {len(lengths)}, median {lengths[len(lengths) // 2]}, p90 {p90}, longest {lengths[-1]}")
    print(f"isinstance of kinds: {sum(kinds.values())}", dict(kinds))
    print(f"imports inside functions: {sum(lazy.values())}", dict(lazy))
    print(f"docstrings that begin with a fragment: {sum(fragments.values())}", dict(fragments))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "src/costate"))
