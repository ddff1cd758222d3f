"""A process that reads damaged inputs: `kind number` per line in, a line of JSON per case out. See `fuzz.py`."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.faults.inputs import make_run, try_case


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_run(folder / "sound")
        print("ready", flush=True)
        for line in sys.stdin:
            kind, number = line.split()
            print(json.dumps(asdict(try_case(kind, int(number), folder))), flush=True)


if __name__ == "__main__":
    main()
