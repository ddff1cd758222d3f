"""The disk cache: hits without rebuilding; bad entries and bad disks cost time, never correctness."""

from __future__ import annotations

import errno
import multiprocessing
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import pytest
import torch
from tests.kernel import programs
from tests.kernel.programs import every_kind_inputs, same_bits

from costate.kernel import Kernel, link, recipe
from costate.kernel.machine import cache
from costate.kernel.machine.target import host

X = torch.tensor([[1.0, 2.0]], dtype=torch.float64)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of its own for every test."""
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Number types compiled from now on, one entry per compilation."""
    calls: list[str] = []
    original = link.compile_program

    def spy(program, layout, target, dtype):
        calls.append(dtype)
        return original(program, layout, target, dtype)

    monkeypatch.setattr(link, "compile_program", spy)
    return calls


def small(factor: float = 3.0) -> Kernel:
    x = ca.SX.sym("x", 2)
    return Kernel("small", {"x": x}, {"y": factor * x * x[0]})


def check(kernel: Kernel, factor: float = 3.0) -> None:
    assert torch.equal(kernel(x=X).y, factor * X * X[:, :1])


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.bin"), key=lambda p: p.stat().st_mtime_ns)


# --- hits -------------------------------------------------------------------------------------------------------------


def test_a_hit_needs_no_compiler(folder: Path, compiled: list[str]) -> None:
    check(small())
    check(small())
    assert compiled == ["f64"]
    assert len(entries(folder)) == 1
    small()(x=X.float())
    assert compiled == ["f64", "f32"]


def test_a_derivative_is_found_before_it_is_differentiated(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a hit nothing is differentiated, optimised or lowered: the key is known from the parent's."""

    def gradient_and_tangent() -> list[torch.Tensor]:
        k = programs.every_kind()
        leaves = [t.requires_grad_() for t in every_kind_inputs(3)]
        grads = torch.autograd.grad(k.apply(leaves)[0].sum(), leaves)
        j = k.jacobian("rooted", "x")(**dict(zip("xuk", every_kind_inputs(3), strict=True)))
        return [*grads, j]

    expected = gradient_and_tangent()

    def fail(*_, **__):
        raise AssertionError("a kernel in the cache was built again")

    for name in ("jvp", "vjp", "jacobian"):
        monkeypatch.setattr(recipe, name, fail)
    monkeypatch.setattr(recipe.Derived, "build", fail)
    monkeypatch.setattr(link, "compile_program", fail)
    for a, b in zip(expected, gradient_and_tangent(), strict=True):
        assert same_bits(a, b)


def test_what_changes_the_code_changes_the_key(folder: Path, compiled: list[str]) -> None:
    """Constants, what is derived, the number type, the layout, the CPU."""
    check(small())
    check(small(4.0), 4.0)
    assert len(compiled) == 2
    assert small().key == small().key
    assert small().vjp().key != small().jvp().key != small().key
    layout = small().layout
    keys = {
        cache.entry_key("k", layout, "f64", host()),
        cache.entry_key("j", layout, "f64", host()),
        cache.entry_key("k", layout, "f32", host()),
        cache.entry_key("k", None, "f64", host()),
        cache.entry_key("k", layout, "f64", type(host())(host().triple, "other", host().features, host().register)),
    }
    assert len(keys) == 5


def test_the_key_holds_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache.entry_key("k", None, "f64", host())
    monkeypatch.setattr(cache, "_versions", lambda: "another version")
    assert cache.entry_key("k", None, "f64", host()) != before


def test_keys_agree_between_processes(folder: Path) -> None:
    code = "from tests.kernel import programs\nprint(programs.every_kind().key, programs.every_kind().vjp().key)"
    found = {run(code, folder, PYTHONHASHSEED=seed) for seed in ("1", "2")}
    k = programs.every_kind()
    assert found == {f"{k.key} {k.vjp().key}"}


def run(code: str, folder: Path, **environment: str) -> str:
    """Standard output of a fresh process."""
    return start(code, folder, **environment).communicate()[0].strip()


def start(code: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[3]
    paths = {"PYTHONPATH": os.pathsep.join([str(root), str(root / "src")]), "COSTATE_CACHE": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", code],
        env=os.environ | paths | environment,
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_compile_the_same_kernel_at_once(folder: Path) -> None:
    """Neither disturbs the other, both get the right answer, and what is left is whole."""
    code = """
from tests.kernel import programs
k = programs.every_kind()
out = k.apply(programs.every_kind_inputs(3))
print([float(o.sum()) for o in out])
"""
    both = [start(code, folder) for _ in range(2)]
    answers = {p.communicate()[0].strip() for p in both}
    assert [p.returncode for p in both] == [0, 0]
    out = programs.every_kind().apply(programs.every_kind_inputs(3))
    assert answers == {str([float(o.sum()) for o in out])}
    assert not list(folder.glob("*.tmp"))
    for file in entries(folder):
        assert cache.load(file.stem) is not None


def in_forks(work: Callable[[Any], None], number: int = 1) -> tuple[list[Any], Any]:
    """Children that do some work, which is given a queue; and that queue."""
    context: Any = multiprocessing.get_context("fork")
    told = context.Queue()
    children = [context.Process(target=work, args=(told,)) for _ in range(number)]
    for child in children:
        child.start()
    return children, told


def slowly(monkeypatch: pytest.MonkeyPatch, seconds: float, told: Any = None) -> list[str]:
    """Let every compilation take longer, and note it."""
    noted: list[str] = []
    original = link.compile_program

    def spy(program, layout, target, dtype):
        (told.put if told else noted.append)(dtype)
        time.sleep(seconds)
        return original(program, layout, target, dtype)

    monkeypatch.setattr(link, "compile_program", spy)
    return noted


def test_of_many_processes_one_compiles_and_the_others_wait(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(told: Any) -> None:
        slowly(monkeypatch, 0.5, told)
        check(small())

    children, told = in_forks(work, 6)
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * 6
    assert told.get(timeout=10) == "f64" and told.empty()  # compiled once
    assert len(entries(folder)) == 1
    assert not list(folder.glob("*.lock"))


def test_a_compiler_that_is_killed_keeps_nobody_waiting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(told: Any) -> None:
        slowly(monkeypatch, 100, told)
        check(small())

    (child,), told = in_forks(work)
    assert told.get(timeout=60) == "f64"
    assert len(list(folder.glob("*.lock"))) == 1  # it is in the middle of it
    child.kill()
    child.join(60)
    noted, begun = slowly(monkeypatch, 0), time.monotonic()
    check(small())
    assert noted == ["f64"]
    assert time.monotonic() - begun < cache.PATIENCE / 10
    assert not list(folder.glob("*.lock"))


def test_a_compiler_that_hangs_is_waited_for_only_so_long(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(told: Any) -> None:
        slowly(monkeypatch, 100, told)
        check(small())

    (child,), told = in_forks(work)
    assert told.get(timeout=60) == "f64"
    monkeypatch.setattr(cache, "PATIENCE", 0.3)
    check(small())
    assert len(entries(folder)) == 1
    child.kill()
    child.join(60)
    assert cache.clear_cache() == 1
    assert not list(folder.iterdir())  # the lock of the killed process is gone, too


# --- bad entries ------------------------------------------------------------------------------------------------------


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGE = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[:-1],
    "only the head": lambda data: data[:40],
    "longer": lambda data: data + b"x",
    "a bit in the code": lambda data: flip(data, len(data) - 100),
    "a bit in the head": lambda data: flip(data, len(cache.MAGIC) + 45),
    "a bit in the checksum": lambda data: flip(data, len(cache.MAGIC) + 3),
    "another format": lambda data: b"costate kernel 0\n" + data[len(cache.MAGIC) :],
    "text": lambda data: b"not a kernel\n" * 100,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_entries_are_compiled_again(folder: Path, compiled: list[str], damage) -> None:
    check(small())
    (file,) = entries(folder)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    check(small())
    assert len(compiled) == 2
    check(small())  # the entry was replaced by a good one
    assert len(compiled) == 2


def test_another_kernels_entry_is_not_taken(folder: Path, compiled: list[str]) -> None:
    """An entry under a wrong name is whole, but not what was asked for."""
    check(small())
    check(small(4.0), 4.0)
    first, second = entries(folder)
    first.write_bytes(second.read_bytes())
    check(small())
    assert len(compiled) == 3


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes are POSIX")
def test_entries_others_could_have_written_are_not_taken(
    folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(small())
    (file,) = entries(folder)
    for mode in (0o620, 0o602, 0o666):
        os.chmod(file, mode)
        check(small())
        assert stat.S_IMODE(entries(folder)[0].stat().st_mode) == 0o600  # replaced
    assert len(compiled) == 4
    real = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: real + 1)  # as if it belonged to somebody else
    check(small())
    assert len(compiled) == 5


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes are POSIX")
def test_entries_are_for_the_owner_only(folder: Path) -> None:
    old = os.umask(0)
    try:
        check(small())
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(entries(folder)[0].stat().st_mode) == 0o600


def test_an_entry_that_is_a_folder(folder: Path, compiled: list[str]) -> None:
    check(small())
    (file,) = entries(folder)
    file.unlink()
    file.mkdir()
    with pytest.warns(RuntimeWarning, match="cannot be stored"):
        check(small())
    assert len(compiled) == 2


# --- bad disks --------------------------------------------------------------------------------------------------------


def test_a_full_disk_is_a_warning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match=r"cannot be stored in .*No space left.*Set COSTATE_CACHE to a folder"):
        check(small())
    assert list(folder.iterdir()) == []  # no leftovers


def test_a_read_only_disk_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "mkstemp", read_only)
    with pytest.warns(RuntimeWarning, match="Read-only file system"):
        check(small())


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match=r"cannot be stored in .*Not a directory"):
        check(small())


def test_a_disk_that_cannot_be_read(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    check(small())

    def broken(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(cache, "_trusted", broken)
    check(small())
    assert len(compiled) == 2


# --- settings ---------------------------------------------------------------------------------------------------------


def test_the_cache_can_be_moved_and_switched_off(
    folder: Path, tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(small())
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path / "elsewhere"))
    check(small())
    assert len(entries(tmp_path / "elsewhere")) == 1
    monkeypatch.setenv("COSTATE_CACHE", "")
    assert cache.cache_path() is None
    check(small())
    check(small())
    assert len(compiled) == 4
    assert len(entries(folder)) == 1
    monkeypatch.delenv("COSTATE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_path() == tmp_path / "xdg" / "costate"


def test_the_size_limit_drops_what_was_used_longest_ago(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [small(float(k)) for k in range(1, 5)]
    for k, kernel in enumerate(kernels, 1):
        check(kernel, float(k))
        for file in entries(folder):  # far enough apart for any clock
            os.utime(file, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns - 10**9))
    files = entries(folder)
    size = max(f.stat().st_size for f in files)
    check(small(1.0), 1.0)  # used again: no longer the oldest
    assert entries(folder)[-1] == files[0]
    monkeypatch.setenv("COSTATE_CACHE_LIMIT", str(3 * size + size // 2))
    check(small(5.0), 5.0)
    left = entries(folder)
    assert len(left) == 3
    assert files[1] not in left and files[2] not in left
    assert files[0] in left
    assert cache.cache_info().bytes <= cache.cache_limit()


def test_the_folder_is_looked_at_once_in_a_while(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after every entry, which takes long where there are thousands; but often enough not to exceed the limit by much."""
    looked: list[int] = []
    shrink = cache._shrink
    monkeypatch.setattr(cache, "_shrink", lambda path, limit: (looked.append(limit), shrink(path, limit)))
    for k in range(1, 4):
        check(small(float(k)), float(k))
    assert len(looked) == 1
    monkeypatch.setenv("COSTATE_CACHE_LIMIT", str(50 * max(f.stat().st_size for f in entries(folder))))
    check(small(4.0), 4.0)
    assert len(looked) == 2


def test_an_entry_larger_than_the_limit_still_works(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTATE_CACHE_LIMIT", "10")
    check(small())
    check(small(4.0), 4.0)
    assert len(entries(folder)) <= 1


def test_a_limit_that_is_no_number_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTATE_CACHE_LIMIT", "much")
    with pytest.raises(ValueError, match="COSTATE_CACHE_LIMIT is 'much'; expected a number of bytes"):
        cache.cache_limit()


def test_info_and_clear(folder: Path) -> None:
    assert cache.cache_info() == cache.CacheInfo(folder, 0, 0, cache.DEFAULT_LIMIT)
    check(small())
    check(small(4.0), 4.0)
    info = cache.cache_info()
    assert info.entries == 2
    assert info.bytes == sum(f.stat().st_size for f in entries(folder))
    (folder / "note.txt").write_text("not ours")
    assert cache.clear_cache() == 2
    assert [f.name for f in folder.iterdir()] == ["note.txt"]
    check(small())


def test_leftovers_of_a_killed_process_are_cleared(folder: Path) -> None:
    """A temporary file that nobody will rename counts as an entry: it is dropped first, being oldest, or by a clear."""
    check(small())
    (folder / "abc.tmp").write_bytes(b"x" * 1000)
    assert cache.cache_info().entries == 2
    assert cache.clear_cache() == 2


def test_loading_is_quick(folder: Path) -> None:
    """A derivative of a program of all kinds: at most 0.2 s of processor time from the disk, differentiation not repeated."""
    k = programs.every_kind()
    k.vjp().code()
    fresh = programs.every_kind()
    start = time.process_time()
    fresh.vjp().code()
    assert time.process_time() - start < 0.2
