"""Modules that are broken in all the ways there are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from scanning import Outcome, scan, write

if TYPE_CHECKING:
    from pathlib import Path


def only(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 1
    (error,) = outcome.errors
    assert list(error) == ["file", "frames", "line", "message", "module", "source", "type"]
    assert isinstance(error, dict)
    return error


def broken(directory: Path, text: str) -> dict[str, Any]:
    outcome = scan(write(directory, {"demo.py": text}))
    error = only(outcome)
    assert error["module"] == "demo"
    assert error["file"] == "demo.py"
    assert error["type"] in outcome.err
    assert error["message"].split("\n")[0] in outcome.err
    return error


def test_an_error_says_where_and_how_it_came_about(tmp_path: Path) -> None:
    text = "def parse(text):\n    return int(text)  # may fail\n\n\nLIMIT = parse('many')\n"
    assert broken(tmp_path, text) == {
        "module": "demo",
        "file": "demo.py",
        "line": 2,
        "type": "ValueError",
        "message": "invalid literal for int() with base 10: 'many'",
        "source": "return int(text)  # may fail",
        "frames": [
            {"file": "demo.py", "line": 5, "function": "<module>", "source": "LIMIT = parse('many')"},
            {"file": "demo.py", "line": 2, "function": "parse", "source": "return int(text)  # may fail"},
        ],
    }


def test_an_error_in_a_library_is_shown_at_the_line_that_calls_it(tmp_path: Path) -> None:
    error = broken(tmp_path, "import json\n\njson.loads('{')\n")
    assert (error["line"], error["source"]) == (3, "json.loads('{')")
    assert error["type"] == "json.decoder.JSONDecodeError"
    assert error["frames"][-1]["file"].endswith("json/decoder.py")


@pytest.mark.parametrize(
    ("text", "line", "kind", "message"),
    [
        (
            "import sys\nsys.exit(3)",
            2,
            "SystemExit",
            "ends the program (exit code 3) when it is imported: put that",
        ),
        ("raise SystemExit", 1, "SystemExit", "exit code 0"),
        ("exit('bye')", 1, "SystemExit", "(saying: bye)"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt", "the module was interrupted"),
        ("class Stop(BaseException): pass\nraise Stop('now')", 2, "demo.Stop", "now"),
        ("def f(): f()\nf()", 1, "RecursionError", "a function calls itself without end"),
        ("\n\nimport no_such_package.inner", 3, "ModuleNotFoundError", "pip install no_such_package"),
        ("import yaml_ as y", 1, "ModuleNotFoundError", "package 'yaml_' is not installed for /"),
        ("from google.cloud import nope_x", 1, "ModuleNotFoundError", "pip install google"),
        ("import distutils.nope", 1, "ModuleNotFoundError", "not part of this Python"),
        ("from json import nope", 1, "ImportError", "cannot import name 'nope' from 'json'"),
        ("input('Name: ')", 1, "EOFError", "asks for input when it is imported: nobody is there"),
        (
            "import servo\nclass Station(servo.Resource):\n  url: str\nStation(url='http://station')",
            4,
            "TypeError",
            "Station() takes no arguments: if its annotations are to be fields, write @dataclasses.dataclass",
        ),
        ("assert 1 == 2, 'sums'", 1, "AssertionError", "sums"),
        ("e = ValueError('a')\ne.add_note('look here')\nraise e", 3, "ValueError", "a\nlook here"),
        (
            "try: {}[1]\nexcept KeyError as e: raise ValueError('b') from e",
            2,
            "ValueError",
            "b\nbecause of KeyError: 1",
        ),
        (
            "raise ExceptionGroup('two', [ValueError('c'), OSError('d')])",
            1,
            "ExceptionGroup",
            "ValueError: c\nOSError: d",
        ),
        (
            "class E(Exception):\n  def __str__(self): 1/0\nraise E",
            3,
            "demo.E",
            "cannot be shown: ZeroDivisionError",
        ),
        ("raise ValueError('\\udce9')", 1, "ValueError", "\\udce9"),
        ("raise ValueError('é\\0')", 1, "ValueError", "é\0"),
        ("exec('x = = 1')", 1, "SyntaxError", "invalid syntax"),
    ],
)
def test_each_kind_of_error(tmp_path: Path, text: str, line: int, kind: str, message: str) -> None:
    error = broken(tmp_path, text)
    assert (error["type"], error["line"]) == (kind, line)
    assert message in error["message"]
    assert error["source"] == text.split("\n")[line - 1].strip()


def test_a_long_traceback_is_shortened(tmp_path: Path) -> None:
    error = broken(tmp_path, "def f(): f()\nf()")
    assert len(error["frames"]) == 30
    assert error["frames"][0]["line"] == 2


@pytest.mark.parametrize(
    ("text", "line", "source"),
    [
        ("x = 1\nif x:\n    y = = 2\n", 3, "y = = 2\n    ^"),
        ("def f(:\n", 1, "def f(:\n      ^"),
        ("x = (1,\n", 1, "x = (1,\n    ^"),
        ("    x = 'a'.b = 'c'()\n", 1, "x = 'a'.b = 'c'()\n^"),
        ("if True:\nx = 1\n", 2, "x = 1\n^"),
        ("x = f(a b)\n", 1, "x = f(a b)\n      ^^^"),
    ],
)
def test_syntax_errors_are_pointed_at(tmp_path: Path, text: str, line: int, source: str) -> None:
    error = broken(tmp_path, text)
    assert (error["line"], error["source"], error["frames"]) == (line, source, [])
    assert error["type"] in {"SyntaxError", "IndentationError"}


@pytest.mark.parametrize("data", [b"x = 1\ny = '\xff'\n", b"x = 1\0\n", b"# coding: nope\n"])
def test_files_that_are_no_text(tmp_path: Path, data: bytes) -> None:
    write(tmp_path, {})
    (tmp_path / "demo.py").write_bytes(data)
    error = only(scan(tmp_path))
    assert (error["module"], error["file"]) == ("demo", "demo.py")
    assert error["message"]


def test_every_broken_module_is_reported_once(tmp_path: Path) -> None:
    outcome = scan(
        write(
            tmp_path,
            {
                "servo.toml": '[project]\nmodules = ["demo", "missing", "demo.z"]\n',
                "demo/__init__.py": "",
                "demo/a.py": "from demo import bad\n",
                "demo/b.py": "import demo.bad\n",
                "demo/bad.py": "\n1 / 0\n",
                "demo/fine.py": "print('fine')\n",
                "demo/package/__init__.py": "raise ValueError('package')\n",
                "demo/package/inner.py": "raise ValueError('never')\n",
                "demo/z.py": "x = = 1\n",
            },
        )
    )
    found = [(error["module"], error["file"], error["line"]) for error in outcome.errors]
    assert found == [
        ("demo.bad", "demo/bad.py", 2),
        ("demo.package", "demo/package/__init__.py", 1),
        ("demo.z", "demo/z.py", 1),
        ("missing", "servo.toml", 2),
    ]
    assert "fine" in outcome.err
    assert outcome.err.count("ZeroDivisionError") == 1


def test_a_module_of_the_project_file_that_does_not_exist(tmp_path: Path) -> None:
    error = only(scan(write(tmp_path, {})))
    assert (error["file"], error["line"]) == ("servo.toml", 3)
    assert error["source"] == 'modules = ["demo"]'
    assert "there is no such module in the project, which looks in . (path in servo.toml)" in error["message"]


def test_a_module_of_the_project_that_does_not_exist(tmp_path: Path) -> None:
    error = only(scan(write(tmp_path, {"demo/__init__.py": "import demo.nope\n"})))
    assert (error["file"], error["line"]) == ("demo/__init__.py", 1)
    assert "there is no such module in the project" in error["message"]


def test_modules_that_import_each_other(tmp_path: Path) -> None:
    outcome = scan(
        write(
            tmp_path,
            {
                "demo/__init__.py": "",
                "demo/a.py": "from demo.b import y\nx = 1\n",
                "demo/b.py": "from demo.c import z\ny = 1\n",
                "demo/c.py": "from demo.a import x\nz = 1\n",
            },
        )
    )
    assert len(outcome.errors) == 3
    assert "in a circle, demo.a → demo.b → demo.c → demo.a" in outcome.errors[0]["message"]
    assert "import inside of the function that needs it" in outcome.errors[0]["message"]


def test_modules_that_import_each_other_as_modules(tmp_path: Path) -> None:
    files = {
        "demo/__init__.py": "",
        "demo/a.py": "import demo.b\nx = 1\n",
        "demo/b.py": "import demo.a\ny = demo.a.x\n",
    }
    assert "in a circle" in scan(write(tmp_path, files)).errors[0]["message"]


@pytest.mark.parametrize(
    ("declaration", "kind"),
    [
        ("@servo.asset(namespace=1)", "TypeError"),
        ("@servo.asset(nope=1)", "TypeError"),
        ("@servo.asset(namespace='raw', checks=[1])", "TypeError"),
        ("@servo.assett(namespace='raw')", "AttributeError"),
    ],
)
def test_errors_of_declarations_are_at_the_users_line(tmp_path: Path, declaration: str, kind: str) -> None:
    error = broken(tmp_path, f"import servo\n\n\n{declaration}\ndef flights():\n    return 1\n")
    assert (error["type"], error["line"], error["source"]) == (kind, 4, declaration)
    assert [frame["file"] for frame in error["frames"]] == ["demo.py"]


def test_declarations_that_do_not_fit_together(tmp_path: Path) -> None:
    text = "import servo\n@servo.asset_check(asset='raw.nope')\ndef check(nope):\n    return True\n"
    outcome = scan(write(tmp_path, {"demo.py": text}))
    error = only(outcome)
    assert (error["file"], error["line"], error["type"]) == ("demo.py", 2, "DeclarationError")
    assert error["source"] == "@servo.asset_check(asset='raw.nope')"
    assert "raw.nope, which is not declared" in outcome.err


def test_texts_that_are_no_unicode(tmp_path: Path) -> None:
    text = "import servo\n@servo.asset(namespace='raw', description='\\ud800')\ndef flights(): pass\n"
    error = only(scan(write(tmp_path, {"demo.py": text})))
    assert (error["file"], error["line"]) == ("demo.py", 2)
    assert "asset raw/flights: a string has half of a surrogate pair" in error["message"]


def test_names_of_files_that_are_no_unicode(tmp_path: Path) -> None:
    directory = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(directory)  # noqa: PTH102 - pathlib has no bytes
    except OSError:
        pytest.skip("the file system has only Unicode names")
    project = tmp_path / os.fsdecode(b"caf\xe9")
    write(project, {"demo.py": "1 / 0"})
    assert only(scan(project, cwd=tmp_path))["file"] == "demo.py"
    write(
        project,
        {"demo.py": "import servo\nHERE = __file__\n@servo.asset(namespace='a')\ndef b(): return HERE"},
    )
    assert scan(project, cwd=tmp_path).manifest["assets"][0]["key"] == "a/b"
    write(project, {"servo.toml": ""})
    assert "caf\\xe9/servo.toml" in scan(project, cwd=tmp_path).errors[0]["file"]


def test_modules_may_change_the_process(tmp_path: Path) -> None:
    text = """\
import builtins, os, sys
sys.stdout = None
os.chdir("/")
sys.path.clear()
sys.stderr.close()
sys.modules.pop("json", None)
os.close(0)
builtins.print = None
raise ValueError("after all")
"""
    assert only(scan(write(tmp_path, {"demo.py": text})))["message"] == "after all"
