"""`make demo` and `make test` compile dependencies once between them, and say how long that takes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
# A parser of regular expressions, which proptest wants whole.
APART = {"regex-syntax"}


def output(*command: str) -> str:
    return subprocess.run(  # noqa: S603 - our own programs
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    ).stdout


def packages(*edges: str) -> set[str]:
    """Give the packages of the workspace, each with its version and its features."""
    tree = output(
        "cargo", "tree", "--locked", "--workspace", "--prefix", "none", "--format", "{p} {f}", *edges
    )
    return {line.removesuffix(" (*)").strip() for line in tree.splitlines() if line}


def test_tests_need_no_dependency_of_the_program_in_another_form() -> None:
    again = packages("--edges", "no-dev") - packages()
    names = {line.split()[0] for line in again}
    assert {name for name in names if not name.startswith("servo-")} <= APART


def test_both_commands_build_alike_and_say_how_long_it_takes(tmp_path: Path) -> None:
    nothing = f"BUILD={tmp_path}"
    demo, test = (output("make", "--dry-run", nothing, target) for target in ("demo", "test"))
    assert "cargo build --locked --workspace --bin servo" in demo
    assert "cargo nextest run --locked --workspace" in test
    for commands in (demo, test):
        assert "minutes on two cores" in commands or "takes about 8 minutes" in commands


def test_a_release_knows_the_commit_that_it_is_made_of(tmp_path: Path) -> None:
    script = tmp_path / "build-script"
    output("rustc", "--edition", "2024", "-o", str(script), "crates/servo-cli/build.rs")

    def version(profile: str, **variables: str) -> str:
        told = subprocess.run(  # noqa: S603 - compiled above
            [script],
            cwd=ROOT / "crates" / "servo-cli",
            env={**os.environ, "CARGO_PKG_VERSION": "9.8.7", "PROFILE": profile, "SERVO_WITHOUT_UI": "1"}
            | variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        return told.partition("SERVO_VERSION=")[2].splitlines()[0]

    assert version("debug") == "9.8.7"
    assert version("debug", SERVO_COMMIT="0123456789ab") == "9.8.7 (0123456789ab)"
    head = output("git", "rev-parse", "--short=12", "HEAD").strip()
    assert version("release") == f"9.8.7 ({head})"
