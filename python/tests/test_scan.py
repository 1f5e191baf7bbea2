"""Scans that go well: what is printed, where, and that it is always the same."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from generate_project import generate
from scanning import SOURCE, scan, write
from servo import canonical
from servo.scan import too_old

if TYPE_CHECKING:
    from pathlib import Path

ASSET = """\
import servo


@servo.asset(namespace="{namespace}")
def {name}():
    return 1
"""


def asset(name: str, namespace: str = "raw") -> str:
    return ASSET.format(name=name, namespace=namespace)


def keys(manifest: dict[str, list[dict[str, str]]]) -> list[str]:
    return [entry["key"] for entry in manifest["assets"]]


def test_a_project_of_one_module(tmp_path: Path) -> None:
    outcome = scan(write(tmp_path, {"demo.py": asset("flights")}))
    assert outcome.err == ""
    (flights,) = outcome.manifest["assets"]
    version = flights.pop("code_version")
    assert version.startswith("sha256:")
    assert flights == {
        "function": "demo:flights",
        "key": "raw/flights",
        "location": {"file": "demo.py", "line": 4},
    }
    assert outcome.manifest["project"] == "demo"


def test_the_output_is_canonical_and_has_its_digest(tmp_path: Path) -> None:
    outcome = scan(write(tmp_path, {"demo.py": asset("flüge")}), LC_ALL="C", PYTHONIOENCODING="ascii")
    text = outcome.out.decode()
    assert "flüge" in text
    manifest = canonical.canonical_json(outcome.manifest)
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    assert text == f'{{"digest":"sha256:{digest}","manifest":{manifest}}}\n'
    assert canonical.canonicalize(text) + "\n" == text


def test_a_package_stands_for_all_modules_in_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "src/demo/__init__.py": "print('demo')",
            "src/demo/__main__.py": "raise SystemExit(1)",
            "src/demo/b.py": "print('b')\n" + asset("b"),
            "src/demo/a/__init__.py": "print('a')",
            "src/demo/a/z.py": "print('a.z')\n" + asset("z"),
            "src/demo/a/y.py": "print('a.y')\n" + asset("y"),
            "src/demo/without_init/deep/c.py": "print('c')\n" + asset("c"),
            "src/demo/data/notes.md": "",
            "src/demo/not-a-name.py": "raise SystemExit(1)",
            "src/other.py": "raise SystemExit(1)",
        },
    )
    (tmp_path / "src" / "demo" / "loop").symlink_to(tmp_path / "src" / "demo")
    outcome = scan(tmp_path)
    assert outcome.err.split() == ["demo", "a", "a.y", "a.z", "b", "c"]
    assert keys(outcome.manifest) == ["raw/b", "raw/c", "raw/y", "raw/z"]


def test_modules_come_in_the_order_of_the_project_file(tmp_path: Path) -> None:
    toml = '[project]\nmodules = ["two.inner", "one"]\npath = ["lib"]\n'
    files = {"lib/one.py": "print(1)", "lib/two/__init__.py": "", "lib/two/inner.py": "print(2)"}
    assert scan(write(tmp_path, {"servo.toml": toml, **files})).err.split() == ["2", "1"]


def test_modules_outside_of_the_project_are_relative_to_it_too(tmp_path: Path) -> None:
    toml = '[project]\nmodules = ["shared"]\npath = ["../lib"]\n'
    write(tmp_path / "demo", {"servo.toml": toml, "../lib/shared.py": asset("a")})
    (found,) = scan(tmp_path / "demo").manifest["assets"]
    assert found["location"] == {"file": "../lib/shared.py", "line": 4}


def test_whatever_modules_print_goes_to_stderr(tmp_path: Path) -> None:
    text = """\
import atexit, os, subprocess, sys, threading
print("from print é")
sys.stdout.write("without newline")
sys.__stdout__.write("from the original\\n")
os.write(1, b"from os\\n")
subprocess.run(["echo", "from a process"], check=True)
subprocess.run([sys.executable, "-c", "print('from Python')"], check=True)
atexit.register(print, "from atexit")
never = threading.Event()
threading.Thread(target=never.wait).start()
"""
    outcome = scan(write(tmp_path, {"demo.py": text}), PYTHONIOENCODING="ascii")
    assert outcome.manifest["assets"] == []
    for what in ("print é", "the original", "os", "a process", "Python", "atexit"):
        assert f"from {what}" in outcome.err
    assert "without newline" in outcome.err


def test_warnings_go_to_stderr(tmp_path: Path) -> None:
    outcome = scan(write(tmp_path, {"demo.py": "import warnings\nwarnings.warn('take care')\n"}))
    assert outcome.code == 0
    assert "UserWarning: take care" in outcome.err


def test_stderr_may_be_closed(tmp_path: Path) -> None:
    write(tmp_path, {"demo.py": "print('hello')"})
    run = subprocess.run(  # noqa: S602 - the shell closes stderr
        f"{sys.executable} -m servo.scan 2>&-",
        shell=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        check=True,
    )
    assert list(json.loads(run.stdout)) == ["digest", "manifest"]


def test_every_process_in_every_place_prints_the_same(tmp_path: Path) -> None:
    generate(tmp_path / "one", 250)
    generate(tmp_path / "deeper" / "two", 250)
    shared = (tmp_path / "one" / "warehouse" / "shared.py").read_text()
    shared += (
        'NAMES = {"a", "b", "c"}\nHERE = __file__\n'
        '@servo.asset(namespace="x", tags={k: k for k in NAMES})\ndef of_a_set(): return NAMES, HERE, clean\n'
    )
    for place in ("one", "deeper/two"):
        (tmp_path / place / "warehouse" / "shared.py").write_text(shared)
    outputs = {
        scan(tmp_path / "one", seed="1").out,
        scan(tmp_path / "one", seed="2", cwd=tmp_path).out,
        scan(tmp_path / "one" / "warehouse", seed="3", cwd=tmp_path / "one" / "warehouse").out,
        scan(tmp_path / "deeper" / "two", seed="4", cwd=tmp_path).out,
    }
    assert len(outputs) == 1
    (output,) = outputs
    manifest = json.loads(output)["manifest"]
    assert len(manifest["assets"]) == 251
    # What differs between assets of the same code is where they are, not their version.
    assert len({entry["code_version"] for entry in manifest["assets"]}) == 251


def test_the_current_directory_is_not_part_of_the_project(tmp_path: Path) -> None:
    write(tmp_path / "project", {"demo.py": "import beside"})
    write(tmp_path / "elsewhere", {"beside.py": ""})
    (error,) = scan(tmp_path / "project", cwd=tmp_path / "elsewhere").errors
    assert "No module named 'beside'" in error["message"]


def test_modules_see_the_project_as_current_directory(tmp_path: Path) -> None:
    write(tmp_path / "project", {"demo.py": "open('here.txt').close()", "here.txt": ""})
    assert scan(tmp_path / "project", cwd=tmp_path).code == 0


def test_pretty_output_is_for_people(tmp_path: Path) -> None:
    write(tmp_path, {"demo.py": asset("flüge")})
    pretty = scan(tmp_path, "--pretty")
    assert pretty.out.decode().count("\n") > 10
    assert "flüge" in pretty.out.decode()
    assert json.loads(pretty.out) == scan(tmp_path).json


def test_help_goes_to_stderr(tmp_path: Path) -> None:
    outcome = scan(tmp_path, "--help")
    assert (outcome.code, outcome.out) == (0, b"")
    assert "usage: python -m servo.scan" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fast"], "unknown argument '--fast'"),
        (["demo"], "unknown argument 'demo'"),
        (["--project"], "--project needs a directory"),
        (["--project="], "--project needs a directory"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: list[str], message: str) -> None:
    outcome = scan(tmp_path, *arguments)
    assert outcome.code == 2
    assert message in outcome.errors[0]["message"]
    assert "usage:" in outcome.err


def test_a_wrong_project_file(tmp_path: Path) -> None:
    outcome = scan(write(tmp_path, {"servo.toml": "[project]\nmodule = 1\nmodules = []\n"}))
    assert outcome.code == 2
    assert [(error["line"], error["file"]) for error in outcome.errors] == [
        (2, str(tmp_path / "servo.toml")),
        (3, str(tmp_path / "servo.toml")),
    ]
    assert f"error: {tmp_path}/servo.toml:2: unknown key 'module'" in outcome.err


def test_no_project_file(tmp_path: Path) -> None:
    outcome = scan(tmp_path)
    assert outcome.code == 2
    assert "no servo.toml here or in a directory above" in outcome.errors[0]["message"]


def test_importing_the_module_does_nothing() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import servo.scan, sys, gc; print(gc.isenabled(), 'json' in sys.modules)"],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        check=True,
    )
    assert (run.stdout, run.stderr) == (b"True False\n", b"")


@pytest.mark.parametrize(
    ("version", "is_refused"), [((3, 10, 14), True), ((3, 11, 0), False), ((4, 0, 0), False)]
)
def test_old_versions_of_python_are_refused(version: tuple[int, ...], *, is_refused: bool) -> None:
    assert (too_old(version, "python3") is not None) == is_refused


def test_the_file_of_the_program_can_be_read_by_old_versions_of_python() -> None:
    import ast  # noqa: PLC0415

    for name in ("scan.py", "__init__.py"):
        ast.parse((SOURCE / "servo" / name).read_text(encoding="utf-8"), feature_version=(3, 7))


def test_a_record_names_all_that_the_import_depends_on(tmp_path: Path) -> None:
    code = (
        "import os, helper, json\n"
        'open("notes.txt").read()\n'
        'os.path.exists(".none")\n'
        'open("written", "w").close()\n'
        'os.listdir("parts")\n'
        'os.environ.get("LIMIT"), os.environ["HOME"]\n'
    )
    project = write(tmp_path, {"demo.py": code, "helper.py": "", "notes.txt": "x", "parts/a.sql": ""})
    record = scan(project, "--record", HOME="/nowhere").json["record"]
    inside = {file.removeprefix(f"{tmp_path}/") for file in record["files"] if file.startswith(str(tmp_path))}
    assert {"servo.toml", "demo.py", "helper.py", "notes.txt"} <= inside
    assert "written" not in inside
    assert {str(tmp_path), str(tmp_path / "parts")} <= set(record["directories"])
    assert record["variables"]["LIMIT"] is None
    assert record["variables"]["HOME"] == hashlib.sha256(b"/nowhere").hexdigest()
    assert not [file for file in record["files"] if "/json/" in file], "the interpreter stands for it"
    assert "record" not in scan(project, HOME="/nowhere").json


def test_two_saves_in_one_second_are_two(tmp_path: Path) -> None:
    code = "import servo, helper\nservo.external(f'raw.{helper.NAME}')\n"
    project = write(tmp_path, {"demo.py": code, "helper.py": "NAME = 'abc'\n"})
    helper = project / "helper.py"
    saved = helper.stat()
    assert keys(scan(project).manifest) == ["raw/abc"]
    helper.write_text("NAME = 'xyz'\n", encoding="utf-8")
    # As if it had been saved in the same second.
    os.utime(helper, (saved.st_atime, saved.st_mtime))
    assert keys(scan(project).manifest) == ["raw/xyz"]
