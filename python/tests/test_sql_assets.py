"""Assets that a query makes: what they depend on, and what DuckDB makes of them."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import servo
from committing import commit
from declared import assets_of, only_asset
from scanning import scan, write
from servo.errors import DeclarationError
from servo.registry import collecting
from servo.sql.template import Template, TemplateError, read
from servo.storage import Piece, load, staged, store
from servo.storage.errors import IncompatiblePartitions, MissingInput, MissingLibrary

if TYPE_CHECKING:
    from pathlib import Path

DAYS = servo.DailyPartitions(start="2013-01-01")


def declare(query: str, **options: Any) -> servo.SqlAsset:  # noqa: ANN401 - as of sql_asset
    with collecting():
        return servo.sql_asset("analytics.late", query, **options)


def test_references_are_read_outside_of_quotes_and_comments() -> None:
    found = read(
        """
        -- {{ raw.no }}
        select '{ {', "a{b", e'it\\'s', $$ '"-- $$, $x$ $$ $x$, {'a': {'b': 1}}  /* {{ raw.no }} /* nested */
        ' */ from {{raw.flights}} join {{ raw/carriers }} using (carrier), {{ raw.flights }}, {{ local }}
        where day = {{ partition }} and region = {{ partition.region }} and delay > {{ config.least }}
        """
    )
    assert found.assets == {"raw.flights": "raw/flights", "raw.carriers": "raw/carriers", "local": None}
    values = {
        "partition": ("partition",),
        "partition_region": ("partition", "region"),
        "config_least": ("config", "least"),
    }
    assert found == Template(found.query, found.assets, values, found.normalized)
    assert 'from "raw.flights" join "raw.carriers" using' in found.query
    assert "day = $partition and region = $partition_region and delay > $config_least" in found.query


@pytest.mark.parametrize(
    ("query", "line", "problem"),
    [
        ("select\n'{{ partition }}'", 2, "{{ partition }} is inside of quotes: write it without them"),
        ('select "{{ raw.x }}"', 1, "is inside of quotes"),
        ("select $$ {{ raw.x }} $$", 1, "is inside of quotes"),
        ("select {{ raw.flights", 1, "{{ is not closed with }}"),
        ("select\n\n'abc", 3, "the quote ' is not closed"),
        ('select "abc', 1, 'the quote " is not closed'),
        ("select /* a /* b */", 1, "the comment /* is not closed with */"),
        ("select {{ a.b.c }}", 1, "{{ a.b.c }} names nothing: write {{ namespace.name }} for an asset"),
        ("select {{ 1 + 1 }}", 1, "names nothing"),
        ("select {{ }}", 1, "names nothing"),
        ("select {{ config }}", 1, "names nothing"),
        ("  -- nothing\n ; ", 1, "it is empty"),
    ],
)
def test_queries_that_cannot_be_read_say_in_which_line(query: str, line: int, problem: str) -> None:
    with pytest.raises(TemplateError) as caught:
        read(query)
    assert caught.value.line == line
    assert problem in caught.value.problem


def test_a_query_that_cannot_be_read_is_found_where_it_is_declared() -> None:
    with collecting(), pytest.raises(DeclarationError) as caught:
        servo.sql_asset("analytics.late", "select {{ oops")
    assert caught.value.location.file == __file__
    assert str(caught.value).endswith("asset analytics.late: line 1 of the query: {{ is not closed with }}")
    with collecting(), pytest.raises(DeclarationError, match="has no partitions: give it partitions="):
        servo.sql_asset("analytics.late", "select {{ partition }}")
    with collecting(), pytest.raises(DeclarationError, match=r"config= has limit, and the query has no"):
        servo.sql_asset("analytics.late", "select 1", config={"limit": 3})
    with collecting(), pytest.raises(TypeError, match=r"sql_asset\(query\) takes a text"):
        servo.sql_asset("analytics.late", 7)  # type: ignore[arg-type]
    with collecting(), pytest.raises(TypeError, match="has no argument partition="):
        servo.sql_asset("analytics.late", "select 1", partition=DAYS)  # type: ignore[call-arg]


def test_the_manifest_has_a_query_as_any_other_asset() -> None:
    with collecting() as found:
        servo.sql_asset(
            "analytics.late",
            "from {{ raw.flights }}, {{ carriers }} where delay > {{ config.least }} limit {{ config.n }}",
            config={"least": 15},
            partitions=DAYS,
            deps=[servo.dep("raw.flights", mapping=servo.window(-6, 0)), "raw.weather"],
            description="Late flights",
            checks=[servo.row_count(min=1)],
            tags={"team": "ops"},
        )
    entry = only_asset(found)
    assert entry.pop("location")["line"] > 0
    assert entry.pop("code_version").startswith("sha256:")
    assert entry == {
        "key": "analytics/late",
        "function": "test_sql_assets:late",
        "kinds": ["sql"],
        "description": "Late flights",
        "partitions": DAYS.to_manifest(),
        "checks": [{"name": "row_count", "type": "row_count", "spec": {"min": 1}}],
        "tags": {"team": "ops"},
        "config": {
            "fields": [
                {"name": "least", "type": "float", "required": False, "default": "15"},
                {"name": "n", "type": "object", "required": True},
            ]
        },
        "deps": [
            {
                "asset": "raw/flights",
                "parameter": "flights",
                "mapping": {"kind": "window", "from": -6, "to": 0},
            },
            {"parameter": "carriers"},
            {"asset": "raw/weather"},
        ],
    }


def test_parameters_are_told_apart() -> None:
    with collecting() as found:
        servo.sql_asset("a.b", "from {{ raw.flights }}, {{ clean.flights }}, {{ raw.ctx }}, {{ raw.a-b }}")
    (entry,) = assets_of(found).values()
    assert {dep["asset"]: dep["parameter"] for dep in entry["deps"]} == {
        "raw/flights": "raw_flights",
        "clean/flights": "clean_flights",
        "raw/ctx": "raw_ctx",
        "raw/a-b": "a_b",
    }


def test_kind_and_version_may_be_given() -> None:
    with collecting() as found:
        servo.sql_asset("a.b", "select 1", kind=["sql", "duckdb"], code_version="2")
    entry = only_asset(found)
    assert (entry["kinds"], entry["code_version"]) == (["sql", "duckdb"], "2")


def version(query: str, **options: Any) -> object:  # noqa: ANN401 - as of sql_asset
    return declare(query, **options).spec.code_version


def test_the_version_is_that_of_what_the_query_means() -> None:
    assert version("select 1 from {{ raw.x }}") == version("\n  select 1 -- why\n from /* x */ {{raw.x}} ;\n")
    assert version("select 'a  b'") != version("select 'a b'")
    assert version("select 1 from {{ raw.x }}") != version("select 1 from {{ raw.y }}")
    assert version("select {{ config.n }}", config={"n": 1}) != version(
        "select {{ config.n }}", config={"n": 2}
    )


top_carriers = servo.sql_asset("analytics.top_carriers", "select 1 as n")
renamed = servo.sql_asset("analytics.another", "select 1 as n")


def test_the_function_is_the_variable_that_holds_the_asset() -> None:
    assert top_carriers.declared.name == f"{__name__}:top_carriers"
    assert renamed.declared.name == f"{__name__}:renamed"
    assert declare("select 1").declared.name == f"{__name__}:late"


ROWS = [{"carrier": "AA", "delay": 20}, {"carrier": "UA", "delay": 5}]


@pytest.mark.parametrize("make", [list, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_a_query_can_be_called_in_a_test(make: Any) -> None:  # noqa: ANN401 - any of them
    late = declare(
        "select carrier from {{ raw.flights }} where delay > {{ config.least }}", config={"least": 15}
    )
    assert late(flights=make(ROWS)).to_pylist() == [{"carrier": "AA"}]
    assert late(flights=make(ROWS), config={"least": 1}).num_rows == 2
    with pytest.raises(TypeError, match=r"reads flights, and is given no flights="):
        late()


def test_values_are_bound_and_never_become_part_of_the_text() -> None:
    late = declare("select {{ partition }} as day, {{ config.name }} as name", partitions=DAYS)
    found = late(partition=dt.date(2013, 1, 1), config={"name": "'; drop table x; --"})
    assert found.to_pylist() == [{"day": dt.date(2013, 1, 1), "name": "'; drop table x; --"}]
    with pytest.raises(LookupError, match=r"config\.name \}\} has no value"):
        late(partition="x")
    with pytest.raises(LookupError, match="the run is for no partition"):
        late(config={"name": ""})


def test_dimensions_and_times_of_a_partition_are_values() -> None:
    late = declare(
        "select {{ partition.date }} as day, {{ partition.region }} as region, {{ partition.start }} as at",
        partitions=DAYS,
    )
    key = servo.PartitionKey.parse("date=d:2013-01-01,region=s:ZXU")
    start = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    partition = SimpleNamespace(dims=key.dims, start=start)
    assert late(partition=partition).to_pylist() == [
        {"day": dt.date(2013, 1, 1), "region": "eu", "at": start}
    ]
    with pytest.raises(LookupError, match="has no dimension region: it has date"):
        late(partition={"date": "2013-01-01"})


@pytest.mark.parametrize("query", ["select 1; select 2", "create table x (a int)", "drop table x"])
def test_a_query_is_one_select(query: str) -> None:
    with pytest.raises(ValueError, match="the query of an asset is one SELECT, and this is"):
        declare(query)()


def test_what_duckdb_says_of_a_wrong_query_is_passed_on() -> None:
    with pytest.raises(Exception, match="Parser Error"):
        declare("selec 1")()
    with pytest.raises(Exception, match="Binder Error"):
        declare("select gate from {{ raw.flights }}")(flights=ROWS)


def test_duckdb_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    late = declare("select 1")
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(MissingLibrary, match=r"duckdb is not installed, which runs assets"):
        late()


def as_a_worker(asset: servo.SqlAsset, pieces: dict[str, list[Piece]], ctx: object) -> object:
    """Load what the function takes by its annotations, and call it."""
    annotations = asset.declared.plain.__annotations__
    data = {name: load(found, annotations[name], single=False) for name, found in pieces.items()}
    return asset.declared.function(ctx=ctx, **data)


def test_a_worker_runs_a_query_over_the_files_of_partitions(tmp_path: Path) -> None:
    late = declare(
        "select carrier, gate, {{ partition }} as day from {{ raw.flights }} order by delay", partitions=DAYS
    )
    pieces = []
    tables = [pa.Table.from_pylist(ROWS), pa.table({"delay": [1], "gate": ["B4"], "carrier": ["DL"]})]
    for day, table in enumerate(tables):
        directory = tmp_path / f"date=x[{day}]*"
        store(table, str(directory))
        pieces.append(Piece(str(day), str(directory), "parquet"))
    partition = SimpleNamespace(dims=lambda: {"date": dt.date(2013, 1, 2)})
    value = as_a_worker(late, {"flights": pieces}, SimpleNamespace(partition=partition, config={}))
    stored = store(value, str(tmp_path / "staging"))
    assert (stored.format, stored.row_count) == ("parquet", 3)
    assert stored.schema == {"carrier": "string", "gate": "string", "day": "date32[day]"}
    checked = staged(value, str(tmp_path / "staging"), stored)
    commit(stored, str(tmp_path / "staging"), str(tmp_path / "final"), {})
    found = load([Piece(None, str(tmp_path / "final"), "parquet")], "list[dict]", single=True)
    assert [(row["carrier"], row["gate"]) for row in found] == [("DL", "B4"), ("UA", None), ("AA", None)]
    assert {row["day"] for row in found} == {dt.date(2013, 1, 2)}
    assert checked is not value


def test_a_worker_runs_a_query_over_rows(tmp_path: Path) -> None:
    store(ROWS, str(tmp_path))
    late = declare("select max(delay) as most from {{ raw.flights }}")
    found: Any = as_a_worker(
        late, {"flights": [Piece(None, str(tmp_path), "json")]}, SimpleNamespace(partition=None, config=None)
    )
    assert found.read_all().to_pylist() == [{"most": 20}]


def test_a_worker_says_which_partition_does_not_fit_and_what_is_missing(tmp_path: Path) -> None:
    late = declare("select * from {{ raw.flights }}")
    pieces = []
    for day, value in enumerate([1, "x"]):
        store(pa.table({"delay": [value]}), str(tmp_path / str(day)))
        pieces.append(Piece(str(day), str(tmp_path / str(day)), "parquet"))
    ctx = SimpleNamespace(partition=None, config={})
    with pytest.raises(IncompatiblePartitions, match="column delay of partition 1"):
        as_a_worker(late, {"flights": pieces}, ctx)
    with pytest.raises(MissingInput, match="none of its partitions was ever made"):
        as_a_worker(late, {"flights": []}, ctx)


def test_a_scan_finds_queries(tmp_path: Path) -> None:
    source = """
import servo
flights = servo.external("raw.flights")
top_carriers = servo.sql_asset("analytics.top", "select * from {{ raw.flights }}")
"""
    project = write(tmp_path, {"demo.py": source})
    entry = scan(project).manifest["assets"][0]
    assert (entry["key"], entry["function"], entry["location"]) == (
        "analytics/top",
        "demo:top_carriers",
        {"file": "demo.py", "line": 4},
    )
    write(tmp_path, {"demo.py": source.replace("}}", "")})
    (error,) = scan(project).errors
    assert (error["file"], error["line"]) == ("demo.py", 4)
    assert "{{ is not closed with }}" in error["message"]
