"""Arguments of a function's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest

import servo
from declared import assets_of, only_asset
from servo.manifest import ManifestContext
from servo.registry import Registry, collecting

if TYPE_CHECKING:
    from typing import Annotated as Noted

    import polars as pl


class Database(servo.Resource):
    """A resource."""


class Replica(Database):
    """A more special resource."""


def deps_of(found: Registry) -> list[dict[str, Any]]:
    deps: list[dict[str, Any]] = only_asset(found).get("deps", [])
    return deps


def test_a_parameter_is_the_asset_with_its_name() -> None:
    with collecting() as found:

        @servo.asset
        def made(flights: pl.DataFrame, /, weather, *, airlines: list[str]) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            raise NotImplementedError((flights, weather, airlines))

    assert deps_of(found) == [
        {"parameter": "flights", "type": "pl.DataFrame"},
        {"parameter": "weather"},
        {"parameter": "airlines", "type": "list[str]"},
    ]


def test_a_parameter_receives_the_asset_in_deps_with_its_name() -> None:
    with collecting() as found:

        @servo.asset(deps=["raw.weather", servo.dep("raw.flights", mapping=servo.last()), "raw.airlines"])
        def made(flights: object, airlines: object) -> None:
            raise NotImplementedError((flights, airlines))

    assert deps_of(found) == [
        {"asset": "raw/weather"},
        {"asset": "raw/flights", "mapping": {"kind": "last"}, "parameter": "flights", "type": "object"},
        {"asset": "raw/airlines", "parameter": "airlines", "type": "object"},
    ]


def test_a_dependency_says_what_happens_if_it_is_blocked() -> None:
    with collecting() as found:

        @servo.asset(deps=[servo.dep("raw.weather", on_blocked="skip")])
        def made(flights: Annotated[object, servo.dep("raw.flights", on_blocked="previous")]) -> None:
            raise NotImplementedError(flights)

    assert deps_of(found) == [
        {"asset": "raw/weather"},
        {"asset": "raw/flights", "on_blocked": "previous", "parameter": "flights", "type": "object"},
    ]
    with pytest.raises(TypeError, match='"skip" or "previous"'):
        servo.dep("raw.flights", on_blocked="stop")  # type: ignore[arg-type]


def test_deps_take_keys_assets_specs_and_all_outputs_of_a_function() -> None:
    with collecting() as found:

        @servo.asset
        def one() -> None: ...

        @servo.multi_asset(outputs=[servo.AssetSpec("m.a"), servo.AssetSpec("m.b")])
        def several() -> None: ...

        @servo.asset(
            deps=[
                one,
                several,
                servo.AssetKey("raw", "key"),
                servo.AssetSpec("raw.spec"),
                servo.external("raw.ext"),
            ]
        )
        def made() -> None: ...

    assert assets_of(found)["default/made"]["deps"] == [
        {"asset": key} for key in ("default/one", "m/a", "m/b", "raw/key", "raw/spec", "raw/ext")
    ]


def test_an_explicit_parameter_wins_over_every_other_rule() -> None:
    with collecting() as found:
        servo.resource("db", Database())

        @servo.asset(deps=[servo.dep("raw.flights", parameter="ctx"), servo.dep("raw.other", parameter="db")])
        def made(ctx: servo.Context, db: Database) -> None:
            raise NotImplementedError((ctx, db))

    assert [dep["parameter"] for dep in deps_of(found)] == ["ctx", "db"]
    assert "resources" not in only_asset(found)


def test_an_annotation_names_the_asset_without_the_dataframe_library() -> None:
    with collecting() as found:

        @servo.asset(deps=["raw.weather"])
        def made(
            table: Annotated[pl.DataFrame, servo.dep("raw.flights", mapping=servo.window(-1, 0))],
            sky: Annotated["pl.LazyFrame", servo.dep("raw.weather", mapping=servo.last())],  # noqa: UP037
            airlines: Annotated[pl.DataFrame | None, servo.dep(mapping=servo.all_partitions())],
            hidden: Noted[pl.DataFrame, servo.dep("raw.hidden")],
        ) -> None:
            raise NotImplementedError((table, sky, airlines, hidden))

    assert deps_of(found) == [
        {"asset": "raw/weather", "mapping": {"kind": "last"}, "parameter": "sky", "type": "pl.LazyFrame"},
        {
            "asset": "raw/flights",
            "mapping": {"kind": "window", "from": -1, "to": 0},
            "parameter": "table",
            "type": "pl.DataFrame",
        },
        {"mapping": {"kind": "all"}, "parameter": "airlines", "type": "pl.DataFrame | None"},
        {"parameter": "hidden", "type": "Noted[pl.DataFrame, servo.dep('raw.hidden')]"},
    ]


@pytest.mark.parametrize("name", ["ctx", "context"])
def test_the_context_is_known_by_name(name: str) -> None:
    with collecting() as found:
        exec(f"@servo.asset\ndef made({name}): ...", {"servo": servo, "__name__": "made"})  # noqa: S102
    assert deps_of(found) == []


def test_the_context_is_known_by_annotation() -> None:
    with collecting() as found:

        @servo.asset
        def made(task: servo.Context, other: Annotated[servo.Context, "the same"]) -> None:
            raise NotImplementedError((task, other))

    assert deps_of(found) == []


def test_a_resource_is_known_by_its_name_also_if_it_is_registered_later() -> None:
    with collecting() as found:

        @servo.asset
        def made(warehouse: object, lake: str = "s3://lake") -> None:
            raise NotImplementedError((warehouse, lake))

        servo.resource("warehouse", Database())
        servo.resource("lake", Database())
    assert only_asset(found)["resources"] == ["lake", "warehouse"]
    assert deps_of(found) == []


def test_a_resource_is_known_by_its_class() -> None:
    with collecting() as found:
        servo.resource("replica", Replica())
        servo.resource("primary", Database())

        @servo.asset(name="a")
        def by_class(db: Replica) -> None:
            raise NotImplementedError(db)

        @servo.asset(name="b")
        def by_name_among_several(primary: Database) -> None:
            raise NotImplementedError(primary)

        @servo.asset(name="c")
        def undecided(db: Database) -> None:
            raise NotImplementedError(db)

    assets = assets_of(found)
    assert [assets[f"default/{name}"]["resources"] for name in "abc"] == [["replica"], ["primary"], ["db"]]


def test_a_parameter_with_a_default_keeps_it_unless_something_names_it() -> None:
    with collecting() as found:

        @servo.asset(deps=["raw.flights"])
        def made(flights: object = None, limit: int = 5, *, strict: bool = True) -> None:
            raise NotImplementedError((flights, limit, strict))

    assert deps_of(found) == [{"asset": "raw/flights", "parameter": "flights", "type": "object"}]


@pytest.mark.parametrize(("written", "shown"), [("*flights", r"\*flights"), ("a, **others", r"\*\*others")])
def test_open_parameters_are_refused(written: str, shown: str) -> None:
    with (
        collecting(),
        pytest.raises(TypeError, match=rf"^@asset made takes {shown}: name each parameter instead"),
    ):
        exec(f"@servo.asset\ndef made({written}): ...", {"servo": servo, "__name__": "made"})  # noqa: S102


def test_deps_must_fit_the_parameters() -> None:
    def made(flights: object) -> None:
        raise NotImplementedError(flights)

    with collecting():
        missing = servo.asset(deps=[servo.dep("raw.flights", parameter="table")])
        with pytest.raises(
            TypeError, match=r"gives raw/flights to the parameter table, which .* it has flights$"
        ):
            missing(made)
        ambiguous = servo.asset(deps=["raw.flights", "clean.flights"])
        with pytest.raises(TypeError, match=r'with dep\("clean/flights", parameter="flights"\)$'):
            ambiguous(made)
        servo.asset(deps=["raw.flights", servo.dep("clean.flights", parameter="flights")])(made)


def test_annotations_that_cannot_be_evaluated_are_texts() -> None:
    with collecting() as found:
        exec(  # noqa: S102
            "@servo.asset\ndef made(a: 'not python at all', b: \"'pl.DataFrame'\", c: '1 / 0'): ...",
            {"servo": servo, "__name__": "made"},
        )
    assert [dep["type"] for dep in deps_of(found)] == ["not python at all", "pl.DataFrame", "1 / 0"]


def test_objects_as_annotations_have_a_stable_text() -> None:
    source = """
@servo.asset
def made(a: int, b: list[int], c: int | None, d: Database, e: Odd, f: list["Late"], g: Optional["Late"]): ...
"""
    names = {"servo": servo, "Database": Database, "Odd": object(), "Optional": Optional, "__name__": "made"}
    with collecting() as found:
        exec(compile(source, "made.py", "exec", dont_inherit=True), names)  # noqa: S102
    asset = only_asset(found)
    assert asset["resources"] == ["d"]
    assert [dep["type"] for dep in asset["deps"]] == [
        "int",
        "list[int]",
        "int | None",
        "object",
        "list['Late']",
        "typing.Optional[Late]",
    ]


def test_what_is_available_is_all_partitions_without_those_that_were_never_made() -> None:
    with servo.collecting() as found:

        @servo.asset(deps=[servo.dep("raw.days", mapping=servo.available())])
        def total(days: list[int]) -> int:
            return sum(days)

    (asset,) = found.assets
    entry: Any = asset.to_manifest(ManifestContext(str, lambda _function: ""))
    assert entry["deps"] == [
        {
            "asset": "raw/days",
            "parameter": "days",
            "type": "list[int]",
            "mapping": {"kind": "all"},
            "available": True,
        }
    ]
