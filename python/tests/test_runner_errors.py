"""Tasks that go wrong, in all the ways there are: which code they get, and what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from running import Runner, error_of, piece, started
from scanning import write

if TYPE_CHECKING:
    from pathlib import Path


def raised(directory: Path, body: str) -> dict[str, Any]:
    """Run a function with this body, and one that works after it."""
    lines = "\n    ".join(body.split("\n"))
    text = f"import asyncio, errno, os, sys\n@servo.asset\ndef made(ctx=None):\n    {lines}\n"
    with started(directory, text + "@servo.asset\ndef works(): ...\n") as runner:
        error = error_of(runner.run("made"))
        assert runner.run("works")["outcome"] == "SUCCEEDED"
        assert runner.exit() == 0
    return error


def test_an_exception_has_its_type_and_a_traceback_of_user_code(tmp_path: Path) -> None:
    error = raised(tmp_path, "def parse(text):\n    return int(text)\nreturn parse('many')")
    assert error == {
        "code": "USER_CODE_EXCEPTION",
        "message": "invalid literal for int() with base 10: 'many'",
        "type": "ValueError",
        "bases": ["Exception", "BaseException"],
        "traceback": "Traceback (most recent call last):\n"
        '  File "demo.py", line 7, in made\n'
        "    return parse('many')\n"
        "           ^^^^^^^^^^^^^\n"
        '  File "demo.py", line 6, in parse\n'
        "    return int(text)\n"
        "           ^^^^^^^^^\n"
        "ValueError: invalid literal for int() with base 10: 'many'\n",
        "retriable": False,
        "suggested_action": None,
        "details": {},
    }


def test_notes_and_what_the_system_says_are_kept_as_details(tmp_path: Path) -> None:
    body = "error = FileNotFoundError(2, 'gone', 'a.csv')\nerror.add_note('asked for by a')\nraise error"
    assert raised(tmp_path, body)["details"] == {
        "notes": ["asked for by a"],
        "errno": 2,
        "filename": "a.csv",
    }


@pytest.mark.parametrize(
    ("body", "code", "kind", "message"),
    [
        ("sys.exit()", "USER_CODE_EXCEPTION", "SystemExit", "the function ended the program (exit code 0)"),
        ("sys.exit(3)", "USER_CODE_EXCEPTION", "SystemExit", "exit code 3): return from it instead"),
        ("sys.exit('bye')", "USER_CODE_EXCEPTION", "SystemExit", "(saying: bye)"),
        ("raise KeyboardInterrupt", "USER_CODE_EXCEPTION", "KeyboardInterrupt", "was interrupted"),
        ("class Stop(BaseException): ...\nraise Stop('x')", "USER_CODE_EXCEPTION", None, "x"),
        ("raise GeneratorExit", "USER_CODE_EXCEPTION", "GeneratorExit", ""),
        ("raise asyncio.CancelledError", "USER_CODE_EXCEPTION", "asyncio.exceptions.CancelledError", ""),
        ("def f(): f()\nf()", "USER_CODE_EXCEPTION", "RecursionError", "calls itself without end"),
        ("raise MemoryError", "OUT_OF_MEMORY", "MemoryError", "no memory is left"),
        ("bytes(1 << 60)", "OUT_OF_MEMORY", "MemoryError", "compute=servo.Compute"),
        ("raise OSError(errno.ENOSPC, 'No space left')", "DISK_FULL", "OSError", "No space left"),
        ("raise OSError(errno.EDQUOT, 'Quota')", "DISK_FULL", "OSError", "Quota"),
        ("raise ConnectionResetError('by peer')", "USER_CODE_EXCEPTION", "ConnectionResetError", "by peer"),
        ("raise TimeoutError('slow')", "USER_CODE_EXCEPTION", "TimeoutError", "slow"),
        (
            "import no_such_package",
            "USER_CODE_EXCEPTION",
            "ModuleNotFoundError",
            "pip install no_such_package",
        ),
        ("open('/nowhere')", "USER_CODE_EXCEPTION", "FileNotFoundError", "/nowhere"),
        (
            "try: {}[1]\nexcept KeyError as e: raise ValueError('b') from e",
            "USER_CODE_EXCEPTION",
            "ValueError",
            "b\nbecause of KeyError: 1",
        ),
        (
            "raise ExceptionGroup('two', [ValueError('c'), OSError('d')])",
            "USER_CODE_EXCEPTION",
            "ExceptionGroup",
            "ValueError: c\nOSError: d",
        ),
        (
            "class E(Exception):\n  def __str__(self): 1/0\n  __repr__ = __str__\nraise E",
            "USER_CODE_EXCEPTION",
            None,
            "cannot be shown: ZeroDivisionError",
        ),
        (
            "class E(Exception):\n  def __str__(self): sys.exit(1)\nraise E",
            "USER_CODE_EXCEPTION",
            None,
            "cannot be shown: SystemExit",
        ),
        ("raise ValueError('caf\\udce9 é \\0')", "USER_CODE_EXCEPTION", "ValueError", "caf\\udce9 é \0"),
        (
            "e = ValueError('a')\ne.__cause__ = e\nraise e",
            "USER_CODE_EXCEPTION",
            "ValueError",
            "a",
        ),
    ],
)
def test_each_kind_of_error(tmp_path: Path, body: str, code: str, kind: str | None, message: str) -> None:
    error = raised(tmp_path, body)
    assert error["code"] == code
    assert message in f"{error['message']}: {error['suggested_action']}"
    if kind is not None:
        assert error["type"] == kind
    assert error["retriable"] == (code in {"OUT_OF_MEMORY", "DISK_FULL"})
    assert "servo/runner" not in (error["traceback"] or "")


def test_a_huge_message_is_cut_in_the_middle(tmp_path: Path) -> None:
    error = raised(tmp_path, "raise ValueError('a' * 10_000_000 + 'the end')")
    assert len(error["message"]) <= 8_000
    assert error["message"].startswith("aaa")
    assert error["message"].endswith("the end")
    assert "characters left out" in error["message"]
    assert len(error["traceback"]) <= 32_000


def test_a_deep_recursion_has_a_short_traceback(tmp_path: Path) -> None:
    error = raised(tmp_path, "def f(): f()\nf()")
    assert "Previous line repeated" in error["traceback"]
    assert len(error["traceback"]) < 2_000


def test_an_error_in_async_code_shows_no_event_loop(tmp_path: Path) -> None:
    text = "@servo.asset\nasync def made():\n    raise ValueError('x')\n"
    with started(tmp_path, text) as runner:
        error = error_of(runner.run("made"))
        assert error["traceback"].count("File") == 1


def test_a_module_that_cannot_be_imported_fails_its_tasks_only(tmp_path: Path) -> None:
    files = {
        "servo.toml": '[project]\nmodules = ["good", "bad"]\n',
        "good.py": "import servo\n@servo.asset\ndef made(): ...\n",
        "bad.py": "import servo\nimport no_such_package\n",
    }
    with Runner(write(tmp_path, files)) as runner:
        (failure,) = runner.load()["errors"]
        assert (failure["module"], failure["line"]) == ("bad", 2)
        assert runner.run("good:made", assets=["default/made"])["outcome"] == "SUCCEEDED"
        error = error_of(runner.run("bad:other"))
        assert error["code"] == "IMPORT_ERROR"
        assert error["message"].startswith("module bad cannot be imported: bad.py:2: ModuleNotFoundError: ")
        runner.send("scan")
        assert runner.wait_for("scanned")["errors"] == [failure]


def test_a_project_that_is_not_there(tmp_path: Path) -> None:
    with Runner(tmp_path / "nowhere") as runner:
        (failure,) = runner.load()["errors"]
        assert failure["type"] == "ConfigError"
        error = error_of(runner.run("made"))
        assert error["code"] == "IMPORT_ERROR"
        assert "no servo.toml" in error["message"]


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        ("no_such.module:made", "IMPORT_ERROR", "there is no module no_such.module in the project"),
        ("demo:nope", "INVALID_DEFINITION", "no function demo:nope that makes"),
        ("json:loads", "INVALID_DEFINITION", "no function json:loads"),
    ],
)
def test_functions_that_are_not_there(tmp_path: Path, function: str, code: str, message: str) -> None:
    with started(tmp_path, "import json\n@servo.asset\ndef made(): ...\n") as runner:
        error = error_of(runner.run(function))
        assert error["code"] == code
        assert message in error["message"]
        assert error["message"].endswith("deploy it again, or restart the worker")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return object()", "default.made cannot be stored: "),
        ("return {1: object()}", "default.made cannot be stored: "),
        ("yield 1; yield 2", "made() yields more than one value: return a list, or declare a @multi_asset"),
        ("return servo.Output('raw.other', 1)", "made() made raw.other, which is not one of default.made"),
        ("return\n    yield", "made() ended without yielding default.made"),
    ],
)
def test_values_that_cannot_be_stored(tmp_path: Path, body: str, message: str) -> None:
    with started(tmp_path, f"@servo.asset\ndef made():\n    {body}\n") as runner:
        finished = runner.run("made")
        error = error_of(finished)
        assert error["code"] == "SCHEMA_VIOLATION"
        assert message in error["message"]
        assert finished["outputs"] == []
        assert not (tmp_path / "lake/final").exists()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1", "split() returned a int for split.a, split.b: return a tuple with a value for each"),
        ("return 1, 2, 3", "split() returned 3 values for split.a, split.b: one for each is wanted"),
        ("return {'split.a': 1}", "split() returned nothing for split.b"),
        ("return {'split.a': 1, 'c': 2}", "split() returned 'c', which is not one of split.a, split.b"),
        ("yield 1", "split() ended without yielding split.b"),
        ("yield 1; yield 2; yield 3", "split() yields more values than it makes assets, 2"),
        ("yield servo.Output('a', 1); yield servo.Output('a', 2)", "split() made split.a twice"),
    ],
)
def test_several_assets_that_do_not_fit(tmp_path: Path, body: str, message: str) -> None:
    text = f"""
@servo.multi_asset(outputs=[servo.AssetSpec("split.a"), servo.AssetSpec("split.b")])
def split():
    {body}
"""
    with started(tmp_path, text) as runner:
        error = error_of(runner.run("split", assets=["split/a", "split/b"]))
        assert error["code"] == "SCHEMA_VIOLATION"
        assert message in error["message"]
        assert not (tmp_path / "lake/final").exists()


def test_a_function_that_fails_late_leaves_nothing(tmp_path: Path) -> None:
    text = """
@servo.multi_asset(outputs=[servo.AssetSpec("split.a"), servo.AssetSpec("split.b")])
def split():
    yield 1
    raise ValueError("late")
"""
    with started(tmp_path, text) as runner:
        finished = runner.run("split", assets=["split/a", "split/b"])
        assert error_of(finished)["message"] == "late"
        assert finished["outputs"] == []
        assert not list((tmp_path / "lake").glob("*/*"))


def needing(
    directory: Path, *pieces: dict[str, Any], single: bool = True, kind: str = "list"
) -> dict[str, Any]:
    text = f"@servo.asset\ndef made(flights: {kind}):\n    return len(flights)\n"
    entry = {"parameter": "flights", "asset": "raw/flights", "single": single, "pieces": list(pieces)}
    with started(directory, text) as runner:
        return error_of(runner.run("made", inputs=[entry]))


def test_an_input_that_was_never_made(tmp_path: Path) -> None:
    error = needing(tmp_path)
    assert error["code"] == "MISSING_INPUT"
    assert "raw.flights" in error["message"]
    assert "materialize it first" in error["message"]


def test_a_parameter_without_an_input(tmp_path: Path) -> None:
    with started(tmp_path, "@servo.asset\ndef made(flights): ...\n") as runner:
        error = error_of(runner.run("made"))
        assert error["code"] == "MISSING_INPUT"
        assert error["message"] == "the parameter flights of made() is given no data"


def test_a_file_of_an_input_that_is_gone(tmp_path: Path) -> None:
    error = needing(tmp_path, piece(tmp_path, None))
    assert error["code"] == "MISSING_INPUT"
    assert "raw.flights cannot be read for the parameter flights" in error["message"]


@pytest.mark.parametrize(("content", "format_"), [(b"{", "json"), (b"PAR1garbage", "parquet")])
def test_a_file_of_an_input_that_is_damaged(tmp_path: Path, content: bytes, format_: str) -> None:
    error = needing(tmp_path, piece(tmp_path, content, format_))
    assert error["code"] == "DATA_CORRUPTION"
    assert "raw.flights cannot be read for the parameter flights" in error["message"]


def test_an_input_without_a_record_was_never_made(tmp_path: Path) -> None:
    found = piece(tmp_path, b"[1]")
    del found["format"]
    error = needing(tmp_path, found)
    assert error["code"] == "MISSING_INPUT"
    assert f"there is no data in {tmp_path / 'made'}: it is gone, or was never committed" in error["message"]


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("data.json", b"[1,2,3", "DATA_CORRUPTION", "it has 6 bytes, 7 were committed"),
        ("data.json", b"[1,2,4]", "DATA_CORRUPTION", "it is not what was committed"),
        ("data.json", b"", "DATA_CORRUPTION", "it has 0 bytes, 7 were committed"),
        ("data.json", None, "MISSING_INPUT", "the file is gone"),
        ("_commit.json", b"", "DATA_CORRUPTION", "_commit.json in "),
        ("_commit.json", b"[]", "DATA_CORRUPTION", "it does not say what is there"),
        ("_commit.json", None, "MISSING_INPUT", "it is gone, or was never committed"),
    ],
)
def test_a_directory_that_is_damaged_is_noticed(
    tmp_path: Path, name: str, content: bytes | None, code: str, message: str
) -> None:
    text = """
@servo.asset
def flights():
    return [1, 2, 3]
@servo.asset
def made(flights: list):
    return sum(flights)
"""
    directory = tmp_path / "lake/final/default.flights"
    entry = {"parameter": "flights", "asset": "default/flights", "single": True}
    inputs = [{**entry, "pieces": [{"uri": str(directory)}]}]
    with started(tmp_path, text) as runner:
        assert runner.run("flights")["outcome"] == "SUCCEEDED"
        assert runner.run("made", inputs=inputs)["outcome"] == "SUCCEEDED"
        (directory / name).unlink()
        if content is not None:
            (directory / name).write_bytes(content)
        error = error_of(runner.run("made", inputs=inputs, attempt=2))
        assert error["code"] == code
        assert message in error["message"]


def test_an_input_of_another_kind(tmp_path: Path) -> None:
    assert needing(tmp_path, piece(tmp_path, b"[1]"), kind="set")["code"] == "SCHEMA_VIOLATION"


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    places = {"default/made": {"staging": str(tmp_path / "file/staging")}}
    with started(tmp_path, "@servo.asset\ndef made():\n    return 'x' * 2_000_000\n") as runner:
        error = error_of(runner.run("made", options=places))
        assert (error["code"], error["retriable"]) == ("INTERNAL_ERROR", True)
        assert "default.made cannot be stored" in error["message"]


def test_an_error_tells_what_else_it_is(tmp_path: Path) -> None:
    text = "@servo.asset\ndef refused():\n    raise ConnectionRefusedError('no')\n"
    with started(tmp_path, text) as runner:
        error = error_of(runner.run("refused"))
    assert error["type"] == "ConnectionRefusedError"
    assert error["bases"] == ["ConnectionError", "OSError", "Exception", "BaseException"]
