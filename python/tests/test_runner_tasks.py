"""Tasks that go well: what functions are given, and what becomes of what they make."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from running import started, stored

if TYPE_CHECKING:
    from pathlib import Path


def only_output(finished: dict[str, Any]) -> dict[str, Any]:
    assert finished["outcome"] == "SUCCEEDED", finished
    (output,) = finished["outputs"]
    assert isinstance(output, dict)
    return output


def piece(
    directory: Path, value: object, name: str = "flights", partition: str | None = None
) -> dict[str, Any]:
    folder = directory / "made" / (partition or name)
    folder.mkdir(parents=True)
    (folder / "data.json").write_text(json.dumps(value))
    return {"partition": partition, "uri": str(folder), "format": "json", "materialization_id": name}


def data(parameter: str, *pieces: dict[str, Any], single: bool = True) -> dict[str, Any]:
    return {
        "parameter": parameter,
        "asset": f"default/{parameter}",
        "io": None,
        "single": single,
        "pieces": list(pieces),
    }


def test_an_output_is_described_and_committed(tmp_path: Path) -> None:
    text = """
@servo.asset
def flights(ctx):
    ctx.metadata(rows=3, ratio=0.5, source={"url": "x"}, bad=float("nan"))
    return [3, 0, 5]
"""
    with started(tmp_path, text) as runner:
        finished = runner.run("flights", attempt=2)
        output = only_output(finished)
        assert output["asset"] == "default/flights"
        assert output["materialization_id"] == "M-default.flights"
        assert output["state"] == "COMMITTED"
        assert output["uri"] == str(tmp_path / "lake/final/default.flights")
        assert (output["format"], output["row_count"], output["byte_size"]) == ("json", 3, 7)
        assert output["metadata"] == {
            "rows": "3",
            "ratio": "0.5",
            "source": '{"url": "x"}',
            "bad": '"nan"',
        }
        assert finished["usage"]["bytes_written"] == 7
        assert finished["usage"]["cpu_ms"] >= 0
        assert finished["usage"]["max_rss_bytes"] > 1_000_000
        record = json.loads((tmp_path / "lake/final/default.flights/_commit.json").read_text())
        assert record["attempt_id"] == "A2"
        assert not (tmp_path / "lake/staging/default.flights-attempt=2").exists()


def test_an_output_names_the_code_that_was_loaded_not_what_its_file_says_by_now(tmp_path: Path) -> None:
    text = """
@servo.asset
def flights():
    return [3]

@servo.asset(code_version="7")
def named():
    return [4]
"""
    with started(tmp_path, text) as runner:
        module = next(tmp_path.rglob("demo.py"), None) or next(tmp_path.rglob("*.py"))
        module.write_text(module.read_text().replace("[3]", "[5]"))
        runner.send("scan")
        manifest = runner.wait_for("scanned")["manifest"]
        declared = {asset["key"]: asset["code_version"] for asset in manifest["assets"]}
        assert only_output(runner.run("flights"))["code_version"] == declared["default/flights"]
        assert only_output(runner.run("named"))["code_version"] == "7"
    with started(tmp_path / "again", text.replace("[3]", "[5]")) as runner:
        assert only_output(runner.run("flights"))["code_version"] != declared["default/flights"]


def test_the_same_attempt_may_run_again(tmp_path: Path) -> None:
    with started(tmp_path, "@servo.asset\ndef flights():\n    return [3]\n") as runner:
        assert only_output(runner.run("flights")) == only_output(runner.run("flights"))


def test_parameters_receive_data_by_annotation(tmp_path: Path) -> None:
    text = """from __future__ import annotations
import servo
from typing import TYPE_CHECKING, Annotated
if TYPE_CHECKING:
    import pyarrow as pa
@servo.asset
def delays(flights: list[int], weather: Annotated[dict, servo.dep("raw.weather")], /, *, nothing: list | None,
           table: pa.Table, retries: int = 7):
    return [flights, weather, nothing, table.num_rows, retries]
"""
    with started(tmp_path, text) as runner:
        inputs = [
            data("flights", piece(tmp_path, [3, 0])),
            data("weather", piece(tmp_path, {"rain": True}, "weather")),
            data("nothing"),
            data("table", piece(tmp_path, [{"a": 1}, {"a": 2}], "table")),
        ]
        only_output(runner.run("delays", inputs=inputs))
        assert stored(tmp_path, "default.delays") == [[3, 0], {"rain": True}, None, 2, 7]


def test_what_was_read_is_counted(tmp_path: Path) -> None:
    with started(tmp_path, "@servo.asset\ndef delays(flights: list):\n    return flights\n") as runner:
        small = piece(tmp_path, [3, 0])
        usage = runner.run("delays", inputs=[data("flights", small)])["usage"]
        assert (usage["bytes_read"], usage["bytes_written"]) == (6, 5)
        told = runner.run("delays", inputs=[data("flights", {**small, "byte_size": 1234})])["usage"]
        assert told["bytes_read"] == 1234


def test_what_is_not_said_of_an_input_is_read_from_its_directory(tmp_path: Path) -> None:
    text = """
import pathlib
@servo.asset
def table():
    import pyarrow
    return pyarrow.table({"a": [1, 2]})
@servo.asset
def text():
    return "text"
@servo.asset
def raw():
    return b"raw"
@servo.asset
def elsewhere():
    pathlib.Path("elsewhere.json").write_text("[7]")
    return servo.Materialization(uri=str(pathlib.Path("elsewhere.json").absolute()))
@servo.asset
def all_of_them(table: "pyarrow.Table", text, raw, elsewhere, nothing):
    return [table.num_rows, text, raw.decode(), elsewhere, nothing]
"""
    names = ("table", "text", "raw", "elsewhere")
    with started(tmp_path, text) as runner:
        for name in names:
            only_output(runner.run(name))
        pieces: dict[str, dict[str, Any]] = {
            name: {"uri": str(tmp_path / "lake/final" / f"default.{name}")} for name in names
        }
        pieces["nothing"] = {"uri": None, "format": "none"}
        finished = runner.run("all_of_them", inputs=[data(name, each) for name, each in pieces.items()])
        only_output(finished)
        assert stored(tmp_path, "default.all_of_them") == [2, "text", "raw", [7], None]
        sizes = [(tmp_path / "lake/final" / f"default.{name}").glob("data.*") for name in names[:3]]
        assert finished["usage"]["bytes_read"] == sum(file.stat().st_size for each in sizes for file in each)


def test_more_than_one_partition(tmp_path: Path) -> None:
    text = "@servo.asset\ndef weekly(days: dict[str, list[int]]):\n    return days\n"
    with started(tmp_path, text) as runner:
        pieces = [piece(tmp_path, [day], "days", f"2013-01-0{day}") for day in (1, 2)]
        finished = runner.run("weekly", inputs=[data("days", *pieces, single=False)])
        assert finished["outcome"] == "SUCCEEDED", finished
        assert stored(tmp_path, "default.weekly") == {"2013-01-01": [1], "2013-01-02": [2]}


def test_the_context_says_what_the_task_is(tmp_path: Path) -> None:
    text = """
@servo.asset(namespace="raw")
def told(ctx: servo.Context):
    day = ctx.partition
    return [
        str(ctx.asset), list(ctx.selected_outputs), str(day), day.date.isoformat(), day["region"],
        day.start.isoformat(), day.end.isoformat(), ctx.partition_window.end == day.end,
        [str(ctx.partition_range.first), str(ctx.partition_range.last)],
        ctx.run_id, ctx.attempt, ctx.config, repr(ctx),
    ]
@servo.asset
def without(ctx):
    return [ctx.partition, ctx.partition_window, ctx.partition_range]
"""
    partition = {
        "key": "date=d:2013-01-01,region=s:ZXU",
        "dims": {"date": "2013-01-01", "region": "eu"},
        "window": ["2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z"],
    }
    with started(tmp_path, text) as runner:
        only_output(runner.run("told", assets=["raw/told"], partition=partition, config={"a": 1}))
        assert stored(tmp_path, "raw.told") == [
            "raw.told",
            ["raw.told"],
            "date=2013-01-01,region=eu",
            "2013-01-01",
            "eu",
            "2013-01-01T00:00:00+00:00",
            "2013-01-02T00:00:00+00:00",
            True,
            ["date=2013-01-01,region=eu"] * 2,
            "run_test",
            1,
            {"a": 1},
            "<context of raw.told date=2013-01-01,region=eu>",
        ]
        only_output(runner.run("without"))
        assert stored(tmp_path, "default.without") == [None, None, None]


def test_functions_find_all_that_is_said_of_a_context(tmp_path: Path) -> None:
    text = """
NAMES = "partition partition_range run_id attempt log secrets config resources metadata progress".split()
@servo.asset
def looks(ctx: servo.Context):
    return [name for name in NAMES if not hasattr(ctx, name) or not hasattr(servo.Context, name)]
"""
    with started(tmp_path, text) as runner:
        only_output(runner.run("looks"))
        assert stored(tmp_path, "default.looks") == []


def test_a_task_that_leaves_the_project_or_removes_where_it_is_does_not_lead_the_next_astray(
    tmp_path: Path,
) -> None:
    text = """
import os
@servo.asset
def leaves(ctx):
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    os.rmdir("../elsewhere")
    return 1
@servo.asset
def looks():
    return os.path.exists("servo.toml")
"""
    with started(tmp_path, text) as runner:
        only_output(runner.run("leaves"))
        only_output(runner.run("looks"))
        assert stored(tmp_path, "default.looks") is True


def test_logs_have_levels_fields_and_tracebacks(tmp_path: Path) -> None:
    text = """
import decimal
@servo.asset
def logs(ctx):
    ctx.log.debug("one %s", 1)
    ctx.log.warning("two", extra={"rows": 3, "ratio": 0.5, "price": decimal.Decimal("1.20"), "of": [1]})
    try:
        1 / 0
    except ZeroDivisionError:
        ctx.log.exception("three")
    ctx.log.error("four %d", "x")
    ctx.log.critical("\\udce9" + "x" * 100_000)
"""
    with started(tmp_path, text) as runner:
        only_output(runner.run("logs"))
        one, two, three, four, five = runner.of_type("log")
        assert (one["level"], one["message"], one["fields"]) == ("debug", "one 1", {})
        assert two["fields"] == {"rows": 3, "ratio": "0.5", "price": "1.20", "of": "[1]"}
        assert three["level"] == "error"
        assert three["message"].endswith("ZeroDivisionError: division by zero")
        assert "cannot be formatted: TypeError" in four["message"]
        assert five["message"].startswith("\\udce9xxx")
        assert "characters left out" in five["message"]


def test_progress_is_thinned_out_but_for_the_last(tmp_path: Path) -> None:
    text = """
@servo.asset
def works(ctx):
    for number in range(10_000):
        ctx.progress(number / 10_000, f"{number}")
    ctx.progress(2, "done")
@servo.asset
def wrong(ctx):
    ctx.progress("half")
"""
    with started(tmp_path, text) as runner:
        only_output(runner.run("works"))
        told = runner.of_type("progress")
        assert told[0] == {"type": "progress", "ppm": 0, "message": "0"}
        assert told[-1] == {"type": "progress", "ppm": 1_000_000, "message": "done"}
        assert len(told) < 1000
        assert "ctx.progress(fraction) takes a number" in runner.run("wrong")["error"]["message"]


@pytest.mark.parametrize(
    ("body", "format_", "uri"),
    [
        ("return None", "none", None),
        ("return servo.Materialization(row_count=3)", "none", None),
        ("return servo.Materialization(uri='s3://lake/x.parquet')", "external", "s3://lake/x.parquet"),
        ("return b'bytes'", "bin", ...),
        ("return servo.Output('default.made', 'text')", "json", ...),
    ],
)
def test_what_is_returned(tmp_path: Path, body: str, format_: str, uri: object) -> None:
    with started(tmp_path, f"@servo.asset\ndef made():\n    {body}\n") as runner:
        output = only_output(runner.run("made"))
        assert output["format"] == format_
        assert output["uri"] == (str(tmp_path / "lake/final/default.made") if uri is ... else uri)
        # Of nothing, nothing is kept.
        assert (tmp_path / "lake").exists() is (format_ != "none")
        if format_ != "none":
            record = json.loads((tmp_path / "lake/final/default.made/_commit.json").read_text())
            assert (record["format"], record["attempt_id"]) == (format_, "A1")
            assert not (tmp_path / "lake/staging").exists()


@pytest.mark.parametrize(
    "body",
    [
        "async def made():\n    import asyncio\n    await asyncio.sleep(0)\n    return [1]",
        "def made():\n    yield [1]",
        "def made():\n    yield servo.Output('default.made', [1], {'rows': 1})",
        "async def made():\n    yield [1]",
        "@wrapping\ndef made():\n    return [1]",
    ],
)
def test_functions_of_all_kinds(tmp_path: Path, body: str) -> None:
    wrapping = """
import functools
def wrapping(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapped
"""
    with started(tmp_path, f"{wrapping}@servo.asset\n{body}\n") as runner:
        only_output(runner.run("made"))
        assert stored(tmp_path, "default.made") == [1]


SPLIT = """
@servo.multi_asset(outputs=[servo.AssetSpec("split.a"), servo.AssetSpec("split.b")], can_subset=True)
def split(ctx, flights=None):
    {}
"""
BOTH = ["split/a", "split/b"]


@pytest.mark.parametrize(
    "body",
    [
        "return 1, 2",
        "return [1, 2]",
        "return {'split.a': 1, 'split/b': 2}",
        "return {'b': 2, 'a': 1}",
        "return servo.Output('split.b', 2), servo.Output('split.a', 1)",
        "yield 1; yield 2",
        "yield servo.Output('split.b', 2); yield servo.Output('a', 1)",
        "yield servo.Output('split.b', 2); yield 1",
    ],
)
def test_several_assets_of_one_function(tmp_path: Path, body: str) -> None:
    with started(tmp_path, SPLIT.format(body)) as runner:
        finished = runner.run("split", assets=BOTH)
        assert finished["outcome"] == "SUCCEEDED", finished
        assert [output["asset"] for output in finished["outputs"]] == BOTH
        assert [stored(tmp_path, asset) for asset in ("split.a", "split.b")] == [1, 2]


@pytest.mark.parametrize(
    "body",
    [
        "return 1, 2",
        "return (2,)",
        "return {'split.a': 1, 'split.b': 2}",
        "return {'b': 2}",
        "return 2",
        "assert ctx.selected_outputs == ('split.b',); yield 2",
        "yield servo.Output('split.a', 1); yield servo.Output('split.b', 2)",
    ],
)
def test_some_of_several_assets(tmp_path: Path, body: str) -> None:
    with started(tmp_path, SPLIT.format(body)) as runner:
        only_output(runner.run("split", assets=["split/b"]))
        assert stored(tmp_path, "split.b") == 2
        assert not (tmp_path / "lake/final/split.a").exists()


def test_what_is_said_of_one_output_is_said_of_that_one(tmp_path: Path) -> None:
    body = "ctx.metadata(all=1); yield servo.Output('split.a', 1, {'one': 2}); yield 2"
    with started(tmp_path, SPLIT.format(body)) as runner:
        first, second = runner.run("split", assets=BOTH)["outputs"]
        assert first["metadata"] == {"all": "1", "one": "2"}
        assert second["metadata"] == {"all": "1"}


def test_functions_made_in_a_loop_are_told_apart(tmp_path: Path) -> None:
    text = """
def make(name):
    @servo.asset(name=name)
    def made():
        return name
for name in ("one", "two"):
    make(name)
"""
    with started(tmp_path, text) as runner:
        for name in ("one", "two"):
            only_output(runner.run("demo:make.<locals>.made", assets=[f"default/{name}"]))
            assert stored(tmp_path, f"default.{name}") == name


RESOURCES = """
import os
class Connection(servo.Resource):
    def setup(self):
        print("connect")
        self.rows = [os.getpid()]
    def teardown(self):
        print("disconnect")
class Session(servo.Resource):
    def __enter__(self):
        print("enter")
        return "the session"
    def __exit__(self, *error):
        print("leave")
        raise ValueError("cannot leave")
class Broken(servo.Resource):
    def setup(self):
        raise ConnectionError("no route")
db = servo.resource("db", Connection())
servo.resource("session", Session())
servo.resource("broken", Broken())
@servo.asset
def uses(db: Connection, session):
    return [db.rows[0] == os.getpid(), session]
@servo.asset
def asks(ctx):
    return sorted(ctx.resources) + [ctx.resources["session"]]
@servo.asset
def fails(broken): ...
@servo.asset
def unknown(ctx):
    ctx.resources["nope"]
@servo.asset
def not_there(replica: type("Replica", (servo.Resource,), {})): ...
"""


def test_resources_are_set_up_once_and_torn_down_at_the_end(tmp_path: Path) -> None:
    with started(tmp_path, RESOURCES) as runner:
        for _ in range(2):
            only_output(runner.run("uses"))
        assert stored(tmp_path, "default.uses") == [True, "the session"]
        only_output(runner.run("asks"))
        assert stored(tmp_path, "default.asks") == ["broken", "db", "session", "the session"]
        assert runner.exit() == 0
        assert runner.output.split() == ["connect", "enter", "leave", "disconnect"]
        assert "resource session could not be torn down: ValueError: cannot leave" in runner.errors


def test_resources_of_a_task_of_its_own_process_are_its_own(tmp_path: Path) -> None:
    with started(tmp_path, RESOURCES) as runner:
        only_output(runner.run("uses"))
        only_output(runner.run("uses", isolation="process", attempt=1))
        assert stored(tmp_path, "default.uses") == [True, "the session"]
        only_output(runner.run("uses"))
        assert runner.exit() == 0
        assert runner.output.split() == ["connect", "enter"] * 2 + ["leave", "disconnect"] * 2


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        ("fails", "USER_CODE_EXCEPTION", "resource broken could not be set up: ConnectionError: no route"),
        ("unknown", "USER_CODE_EXCEPTION", "there is no resource nope"),
        (
            "not_there",
            "INVALID_DEFINITION",
            "not_there() takes the resource replica, which is not registered",
        ),
    ],
)
def test_resources_that_are_not_there(tmp_path: Path, function: str, code: str, message: str) -> None:
    with started(tmp_path, RESOURCES) as runner:
        error = runner.run(function)["error"]
        assert error["code"] == code
        assert message in error["message"]


def test_partitions_that_were_left_out_are_told(tmp_path: Path) -> None:
    text = "@servo.asset\ndef total(days: list[int]) -> int:\n    return sum(days)\n"
    with started(tmp_path, text) as runner:
        entry = {"parameter": "days", "asset": "raw/days", "single": False, "missing": 2}
        finished = runner.run("total", inputs=[{**entry, "pieces": [piece(tmp_path, [1, 2], "days")]}])
        assert finished["outcome"] == "SUCCEEDED", finished
        (log,) = runner.of_type("log")
        assert log["level"] == "warning"
        assert log["message"].startswith("2 of 3 partitions of raw.days were never made")


def test_keys_of_partitions_are_told_with_the_end_of_a_task_that_succeeds(tmp_path: Path) -> None:
    text = """
customers = servo.DynamicPartitions("customers")

@servo.asset
def directory(ctx):
    ctx.add_partitions(customers, ["acme", "globex", "acme"])
    ctx.add_partitions("regions", (key for key in ["eu"]))

@servo.asset
def broken(ctx):
    ctx.add_partitions(customers, ["acme"])
    raise ValueError("after all")

@servo.asset
def letters(ctx):
    ctx.add_partitions(customers, "acme")

@servo.asset
def empty(ctx):
    ctx.add_partitions(customers, [""])
"""
    with started(tmp_path, text) as runner:
        assert runner.run("directory")["added_partitions"] == {
            "customers": ["acme", "globex"],
            "regions": ["eu"],
        }
        assert "added_partitions" not in runner.run("broken")
        assert 'takes a list of texts, such as ["acme"]' in runner.run("letters")["error"]["message"]
        assert "1 to 256 characters" in runner.run("empty")["error"]["message"]
