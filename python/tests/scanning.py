"""Projects on disk, and real runs of `python -m servo.scan` on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).parents[1] / "src"
SERVO_TOML = '[project]\nname = "demo"\nmodules = ["demo"]\n'


class Outcome(NamedTuple):
    """The output of a run, and its exit code."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - tests know its shape
        """The JSON on stdout, which is one line."""
        assert self.out.endswith(b"\n"), self
        assert self.out.count(b"\n") == 1, self
        return json.loads(self.out)

    @property
    def manifest(self) -> Any:  # noqa: ANN401 - as above
        """The manifest of a run that went well."""
        assert self.code == 0, self
        return self.json["manifest"]

    @property
    def errors(self) -> list[Any]:
        """The errors of a run that found some."""
        assert self.code in {1, 2}, self
        assert list(self.json) == ["errors"], self
        errors: list[Any] = self.json["errors"]
        assert errors, self
        return errors


def write(directory: Path, files: dict[str, str]) -> Path:
    """Write files, and a `servo.toml` for the module `demo` unless there is one."""
    for name, text in {"servo.toml": SERVO_TOML, **files}.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return directory


def scan(
    project: Path, *arguments: str, cwd: Path | None = None, seed: str = "0", **environment: str
) -> Outcome:
    """Scan a project in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LC_"))}
    run = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "servo.scan", "--project", str(project), *arguments],
        cwd=cwd or project,
        env={
            **inherited,
            "PYTHONPATH": str(SOURCE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": seed,
            **environment,
        },
        capture_output=True,
        check=False,
        timeout=120,
    )
    return Outcome(run.returncode, run.stdout, run.stderr.decode(errors="replace"))
