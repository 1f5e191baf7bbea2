"""The program that `servo sql` starts: what it prints, what it refuses, and that it changes nothing."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lake import NOON, Lake
from servo.sql import lockdown

if TYPE_CHECKING:
    from pathlib import Path

KINDS = """
select 1::tinyint as tiny, 170141183460469231731687303715884105727 as huge, true as truth,
       0.5::double as half, 'nan'::double as nan, 1.50::decimal(5, 2) as price, date '2013-01-15' as day,
       timestamptz '2013-01-15 12:00:00.25+00' as at, timestamp '2013-01-15 12:00:00' as local,
       interval 90 minute as took, '\\xAB'::blob as hash, [1, 2] as list, {'a': 'x'} as struct,
       null as nothing, '{"b": [1]}'::json as json, e'a"b\\n' as text
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.change(
        "runs",
        [
            {"run_id": "a", "state": "SUCCEEDED", "tasks_total": 10, "created_at": NOON, "row_version": "1"},
            {"run_id": "b", "state": "FAILED", "tasks_total": 5, "created_at": NOON, "row_version": "2"},
        ],
    )
    lake.make("raw/flights", pa.table({"carrier": ["UA"]}))
    lake.publish()
    return lake


def files(lake: Lake) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(lake.root.rglob("*")) if path.is_file()}


def test_a_table_has_numbers_on_the_right(lake: Lake) -> None:
    done = lake.servo_sql("select run_id, state, tasks_total, finished_at, created_at from runs order by 1")
    assert done.stdout.splitlines() == [
        "run_id  state      tasks_total  finished_at  created_at",
        "a       SUCCEEDED           10  NULL         2013-01-01 12:00:00+00",
        "b       FAILED               5  NULL         2013-01-01 12:00:00+00",
    ]
    assert (done.stderr, done.returncode) == ("", 0)


def test_rows_that_are_left_out_are_counted(lake: Lake) -> None:
    done = lake.servo_sql("--rows", "2", "select range as n from range(12345) order by n desc")
    assert done.stdout == "    n\n12344\n12343\n\n2 of 12,345 rows are shown: --rows 0 shows all\n"
    everything = lake.servo_sql("--rows", "0", "from range(12345)").stdout
    assert everything.count("\n") == 12346
    assert "shown" not in everything
    assert lake.servo_sql("from range(100)").stdout.count("\n") == 101
    assert "100 of 101 rows are shown" in lake.servo_sql("from range(101)").stdout


def test_a_table_fits_the_terminal(lake: Lake) -> None:
    query = (
        "select 'x' || repeat('y', 90) as long, 1234567890 as number, '日本' as wide, repeat('z', 40) as last"
    )
    narrow = lake.servo_sql(query, env={"COLUMNS": "50"}).stdout.splitlines()
    assert narrow[:2] == [
        "long                                  number  wide",
        "xyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…  1234567890  日本",
    ]
    assert narrow[-1] == "3 of 4 columns are shown: select those you want, or use --json or --csv"
    assert "y" * 90 in lake.servo_sql(query).stdout, "what goes to a program is not cut"


def test_characters_that_move_the_cursor_are_shown(lake: Lake) -> None:
    done = lake.servo_sql("select chr(27) || '[2J' as a, e'x\\ny' as b, null as c, '' as d")
    assert done.stdout == "a        b     c     d\n\\x1b[2J  x\\ny  NULL\n"


def test_json_has_numbers_as_numbers_and_the_rest_as_text(lake: Lake) -> None:
    done = lake.servo_sql("--json", KINDS)
    assert json.loads(done.stdout) == [
        {
            "tiny": 1,
            "huge": 170141183460469231731687303715884105727,
            "truth": True,
            "half": 0.5,
            "nan": "NaN",
            "price": "1.50",
            "day": "2013-01-15",
            "at": "2013-01-15T12:00:00.25Z",
            "local": "2013-01-15T12:00:00",
            "took": "01:30:00",
            "hash": "ab",
            "list": [1, 2],
            "struct": {"a": "x"},
            "nothing": None,
            "json": {"b": [1]},
            "text": 'a"b\n',
        }
    ]
    assert json.loads(lake.servo_sql("--json", "select 1 as a, 2 as a where false").stdout) == []
    assert json.loads(lake.servo_sql("--json", "select 1 as a, 2 as a").stdout) == [{"a": 1, "a_1": 2}]
    assert len(json.loads(lake.servo_sql("--json", "from range(5000)").stdout)) == 5_000


def test_csv_has_all_rows(lake: Lake) -> None:
    done = lake.servo_sql("--csv", KINDS)
    names, values = csv.reader(io.StringIO(done.stdout))
    assert dict(zip(names, values, strict=True)) == {
        "tiny": "1",
        "huge": "170141183460469231731687303715884105727",
        "truth": "true",
        "half": "0.5",
        "nan": "nan",
        "price": "1.50",
        "day": "2013-01-15",
        "at": "2013-01-15 12:00:00.25+00",
        "local": "2013-01-15 12:00:00",
        "took": "01:30:00",
        "hash": "ab",
        "list": "[1,2]",
        "struct": '{"a":"x"}',
        "nothing": "",
        "json": '{"b":[1]}',
        "text": 'a"b\n',
    }
    assert lake.servo_sql("--csv", "from range(5000)").stdout.count("\n") == 5_001


def test_a_query_comes_from_stdin(lake: Lake) -> None:
    for arguments in ((), ("-",)):
        done = lake.servo_sql("--csv", *arguments, stdin="select 7 as n; -- done\n")
        assert (done.stdout, done.returncode) == ("n\n7\n", 0)
    nothing = lake.servo_sql(stdin=" \n")
    assert (nothing.stderr, nothing.returncode) == ('error: there is no query: servo sql "select …"\n', 2)


@pytest.mark.parametrize(
    "query",
    [
        "from runs select run_id order by 1",
        "with a as (select * from runs) select run_id from a order by 1;",
        "select run_id from (values ('a'), ('b')) t(run_id) /* ; */ -- ;",
        "(select run_id from runs) order by 1",
        "pivot (select run_id, 'x' as k from runs) on k using count(*) group by run_id order by run_id",
    ],
)
def test_queries_of_all_forms_are_run(lake: Lake, query: str) -> None:
    done = lake.servo_sql("--json", query)
    assert [row["run_id"] for row in json.loads(done.stdout)] == ["a", "b"], done.stderr


def test_tables_describe_explain_and_summarize_work(lake: Lake) -> None:
    assert "carrier      VARCHAR" in lake.servo_sql("describe raw.flights").stdout
    assert "carrier" in lake.servo_sql("summarize raw.flights").stdout
    plan = lake.servo_sql("explain analyze select count(*) from runs").stdout
    assert plan.startswith("╭")
    assert "explain_value" not in plan


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select * from runz", "there is no table runz: did you mean runs?"),
        ("select * from flights", "there is no table flights: did you mean raw.flights?"),
        ("select * from raw.flihgts", "there is no table raw.flihgts: did you mean raw.flights?"),
        (
            "from nothing.like_it",
            "there is no table nothing.like_it: `servo sql --tables` lists what there is",
        ),
        ("select\n  stat\nfrom runs", "line 2:   stat\n          ^^^^"),
        ("select 1 +", 'Parser Error: syntax error at or near "+"\nline 1: select 1 +\n                 ^'),
        ("select 1\n\nselect 'a'::int", "Parser Error"),
        ("select\n 'a'::int", "Conversion Error: Could not convert string 'a' to INT32\nline 2:  'a'::int"),
        ("select 1; select 2", "there are 2 statements in it: give one at a time"),
        ("copy runs to 'runs.csv'", "it is no query but COPY: what Servo keeps is only read here"),
        ("explain analyze copy runs to 'x'", "it is no query but COPY"),
        ("create table x as select 1", "it is no query but CREATE"),
        ("set threads = 1", "it is no query but SET"),
        ("attach 'x.db'", "it is no query but ATTACH"),
        (
            "select * from 'other.parquet'",
            "may not be read: a query reads what Servo keeps, and nothing else",
        ),
        ("-- nothing", "there is no query in it"),
    ],
)
def test_mistakes_are_explained(lake: Lake, query: str, message: str) -> None:
    before = files(lake)
    done = lake.servo_sql(query)
    assert message in done.stderr, done.stderr
    assert done.stderr.startswith("error: ")
    assert (done.stdout, done.returncode) == ("", 1)
    assert files(lake) == before


def test_only_the_workspace_can_be_read(lake: Lake) -> None:
    (lake.root / "tenant=default/secret.key").write_text("secret", encoding="utf-8")
    (lake.directory / "ledger").mkdir()
    (lake.directory / "ledger/log.jsonl").write_text("secret", encoding="utf-8")
    for path in ("tenant=default/secret.key", "tenant=default/workspace=main/ledger/log.jsonl"):
        for query in (f"from read_text('{lake.root}/{path}')", f"from glob('{lake.root}/{path}')"):
            done = lake.servo_sql(query)
            assert "secret" not in done.stdout
            assert "may not be read" in done.stderr
    state = f"{lake.directory}/state/orchestration/runs/*.parquet"
    assert lake.servo_sql("--csv", f"select count(*) as n from read_parquet('{state}')").stdout == "n\n2\n"


def test_no_file_can_be_changed(lake: Lake) -> None:
    """SQL can write files in ways that look like a query; the system keeps it from doing so."""
    if not can_be_locked():
        pytest.skip("this system cannot keep a program from writing")
    before = files(lake)
    for directory in (lake.directory / "state/orchestration", lake.directory / "assets", lake.root):
        hidden = f"with a as (copy (select 1) to ''{directory}/x.csv'') select 1"
        query = f"from json_execute_serialized_sql(json_serialize_sql('{hidden}'))"
        done = lake.servo_sql(query)
        assert done.returncode == 1, done
    assert files(lake) == before


def can_be_locked() -> bool:
    program = f"from {lockdown.__name__} import *; print(forbid_writes('/tmp/x/'.replace('x', '.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout == "True\n"


def test_a_program_that_is_locked_writes_in_one_directory_only(tmp_path: Path) -> None:
    if not can_be_locked():
        pytest.skip("this system cannot keep a program from writing")
    for name in ("free", "held"):
        (tmp_path / name).mkdir()
    (tmp_path / "held/old").write_text("old", encoding="utf-8")
    program = f"""
import os, threading
from servo.sql.lockdown import forbid_writes
os.chdir({str(tmp_path)!r})
forbid_writes({str(tmp_path / "free")!r})
def attempt(do):
    try:
        do()
    except PermissionError:
        print("refused")
    else:
        print("done")
def all_of_it():
    attempt(lambda: open("free/new", "w"))
    attempt(lambda: os.rename("free/new", "free/newer"))
    attempt(lambda: open("held/new", "w"))
    attempt(lambda: open("held/old", "a"))
    attempt(lambda: os.truncate("held/old", 0))
    attempt(lambda: os.remove("held/old"))
    attempt(lambda: os.rename("free/newer", "held/newer"))
    attempt(lambda: os.mkdir("held/directory"))
    attempt(lambda: open(os.devnull, "w"))
    attempt(lambda: open("held/old").read())
thread = threading.Thread(target=all_of_it)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == ["done"] * 2 + ["refused"] * 6 + ["done"] * 2, done.stdout
    assert (tmp_path / "held/old").read_text(encoding="utf-8") == "old"


def test_other_files_can_be_allowed(lake: Lake, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = lake.servo_sql("--allow-files", f"copy (select run_id from runs order by 1) to '{out}'")
    assert (done.returncode, done.stderr) == (0, "")
    assert out.read_text(encoding="utf-8") == "run_id\na\nb\n"
    several = f"set variable x = 3; select getvariable('x') + count(*) as n from '{out}';"
    assert lake.servo_sql("--allow-files", "--csv", several).stdout == "n\n5\n"


def test_results_may_go_to_a_file_and_a_reader_may_leave(lake: Lake, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "servo.sql", "--dir", str(lake.root), "--csv"]
    with (tmp_path / "out.csv").open("w") as out:
        subprocess.run([*command, "from range(3)"], stdout=out, check=True)  # noqa: S603
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "range\n0\n1\n2\n"
    read, write = os.pipe()
    with subprocess.Popen([*command, "from range(1000000)"], stdout=write, stderr=subprocess.PIPE) as process:  # noqa: S603
        os.close(write)
        assert os.read(read, 6) == b"range\n"
        os.close(read)
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(60)) == (b"", 0)


def test_what_does_not_fit_into_memory_goes_to_a_directory_that_is_gone_afterwards(
    lake: Lake, tmp_path: Path
) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    done = lake.servo_sql(
        "--csv", "select current_setting('temp_directory') as d", env={"TMPDIR": str(spill)}
    )
    assert done.stdout.splitlines()[1].startswith(f"{spill}/servo-sql-")
    assert list(spill.iterdir()) == []


def test_everything_is_listed(lake: Lake) -> None:
    lake.change("asset_definitions", [{"asset_key": "raw/planned", "row_version": "1"}])
    lake.make("raw/new-rows", [{"a": 1}], {"n": 1})
    lake.make("raw/new-rows", [{"a": 1}, {"a": 2}], {"n": 2})
    lake.publish()
    listed = {each["name"]: each for each in json.loads(lake.servo_sql("--tables", "--json").stdout)}
    assert listed["runs"]["rows"] == 2
    assert listed["runs"]["columns"]["created_at"] == "TIMESTAMP WITH TIME ZONE"
    assert listed["raw.flights"] == {
        "name": "raw.flights",
        "kind": "asset (parquet)",
        "partitions": 1,
        "rows": 1,
        "columns": {"carrier": "string"},
    }
    new = listed['raw."new-rows"']
    assert (new["partitions"], new["rows"], new["kind"]) == (2, 3, "asset (json)")
    assert (listed["raw.planned"]["partitions"], listed["raw.planned"]["rows"]) == (0, None)
    shown = lake.servo_sql("--tables").stdout
    assert "raw.flights             asset (parquet)           1     1  carrier\n" in shown
    assert shown.endswith('`servo sql "describe runs"` shows the columns of one with their types\n')


def test_a_query_begins_anew_if_the_tables_are_written_anew_meanwhile(lake: Lake) -> None:
    """The file of the newest manifest that was seen is gone, and there is a newer manifest by then."""
    program = f"""
import sys
from servo.sql import state
from servo.sql.__main__ import main
newest = state.State.newest.__func__
seen = []
def stale(cls, workspace):
    found = newest(cls, workspace)
    seen.append(found.revision)
    if len(seen) == 1:
        gone = state.File({str(lake.directory / "gone.parquet")!r}, 1, 1, 1)
        return found._replace(revision=0, tables={{"runs": state.TableFiles(changes=(gone,))}})
    return found
state.State.newest = classmethod(stale)
sys.exit(main(["--dir", {str(lake.root)!r}, "--csv", "select count(*) as n from runs"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.stdout, done.stderr, done.returncode) == ("n\n2\n", "", 0)


def test_a_workspace_that_is_not_there_is_named(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    done = lake.servo_sql("--workspace", "other", "select 1")
    assert done.stderr == f"error: there is no workspace {tmp_path}/tenant=default/workspace=other\n"
    assert done.returncode == 1


def test_without_duckdb_the_command_to_install_it_is_shown(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without/_duckdb.py").write_text(
        "raise ModuleNotFoundError(name='_duckdb')", encoding="utf-8"
    )
    source = os.path.dirname(os.path.dirname(lockdown.__file__.removesuffix("/lockdown.py")))  # noqa: PTH120
    done = lake.servo_sql("select 1", env={"PYTHONPATH": f"{tmp_path}/without:{source}"})
    first, _, command, *_ = done.stderr.splitlines()
    assert first == "error: DuckDB is not installed, which runs SQL; install it with"
    assert command.strip().endswith("'servo-orchestrator[sql]'")
    assert sys.executable in command
    assert (done.stdout, done.returncode) == ("", 1)


def test_wrong_options_are_a_wrong_use(lake: Lake) -> None:
    assert lake.servo_sql("--json", "--csv", "select 1").returncode == 2
    assert lake.servo_sql("--nonsense").returncode == 2


def test_a_warning_does_not_disturb_the_result(lake: Lake) -> None:
    directory = lake.make("raw/many", pa.table({"n": [1]}), {"n": 1})
    lake.make("raw/many", pa.table({"n": [2]}), {"n": 2})
    lake.publish()
    os.unlink(f"{directory}/data.parquet")  # noqa: PTH108
    done = lake.servo_sql("--csv", "select n from raw.many")
    assert done.stdout == "n\n2\n"
    assert done.stderr == (
        "warning: 1 of 2 partitions of raw.many are left out, of which there is no data.parquet: 1\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_query_at_once_and_leaves_nothing(
    lake: Lake, tmp_path: Path, number: int
) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    os.unlink(lake.make("raw/many", pa.table({"n": [1]}), {"n": 1}) + "/data.parquet")  # noqa: PTH108
    lake.make("raw/many", pa.table({"n": [2]}), {"n": 2})
    lake.publish()
    query = (
        "select count(*) from raw.many, range(1000000) a, range(1000000) b where a.range * b.range % 7 = n"
    )
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-u", "-m", "servo.sql", "--dir", str(lake.root), query],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(spill)},
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"warning: 1 of 2 partitions"), "the query has begun"
        assert list(spill.iterdir()) != []
        process.send_signal(number)
        assert (process.stderr.read(), process.wait(60)) == (b"", 128 + number)
    assert list(spill.iterdir()) == []


def served(lake: Lake, query: str, **limits: object) -> subprocess.CompletedProcess[str]:
    asked = {"query": query, "rows": 10, "bytes": 100_000, "memory": "256MB", "threads": 1, **limits}
    arguments = [sys.executable, "-m", "servo.sql", "--serve", "--dir", str(lake.root)]
    with subprocess.Popen(  # noqa: S603 - our own program
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        out, err = process.stdout.read(), process.stderr.read()
        return subprocess.CompletedProcess(arguments, process.wait(), out, err)


def test_a_server_gets_columns_and_as_many_rows_as_it_allows(lake: Lake) -> None:
    done = served(lake, "select run_id, tasks_total, created_at from runs order by 1", rows=1)
    assert (done.stderr, done.returncode) == ("", 0)
    assert json.loads(done.stdout) == {
        "columns": [
            {"name": "run_id", "type": "VARCHAR", "number": False, "time": False},
            {"name": "tasks_total", "type": "BIGINT", "number": True, "time": False},
            {"name": "created_at", "type": "TIMESTAMP WITH TIME ZONE", "number": False, "time": True},
        ],
        "truncated": True,
        "warnings": [],
        "rows": [["a", 10, "2013-01-01 12:00:00+00"]],
    }


def test_a_server_gets_every_kind_of_value_as_json(lake: Lake) -> None:
    (row,) = json.loads(served(lake, KINDS).stdout)["rows"]
    assert row[:5] == [1, "170141183460469231731687303715884105727", True, 0.5, "nan"]
    assert row[11:15] == [[1, 2], {"a": "x"}, None, {"b": [1]}]


def test_rows_for_a_server_are_limited_by_size_too(lake: Lake) -> None:
    found = json.loads(served(lake, "select repeat('x', 1000) from range(9)", bytes=5_000).stdout)
    assert (len(found["rows"]), found["truncated"]) == (4, True)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec 1", "syntax error"),
        ("copy (select 1) to 'x.csv'", "servo sql --allow-files"),
        ("select * from read_csv('/etc/passwd')", "may not be read"),
        ("select 1; select 2", "2 statements"),
        ("set memory_limit = '9GB'", "it is no query"),
        ("", "there is no query"),
    ],
)
def test_a_server_is_told_why_a_query_is_refused(lake: Lake, query: str, message: str) -> None:
    before = files(lake)
    done = served(lake, query)
    assert done.returncode in {1, 2}
    assert message in done.stderr
    assert files(lake) == before


def test_a_query_ends_when_the_server_does_not_wait_for_it_any_more(lake: Lake) -> None:
    asked = {"query": "select sum(a * b) from range(1000000000) t(a), range(1000) u(b)", "rows": 1}
    asked |= {"bytes": 1_000, "memory": "256MB", "threads": 1}
    arguments = [sys.executable, "-m", "servo.sql", "--serve", "--dir", str(lake.root)]
    done = subprocess.run(  # noqa: S603 - our own program
        arguments, input=json.dumps(asked) + "\n", capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout == ""
