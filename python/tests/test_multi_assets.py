"""Several assets of one function, and assets that are made elsewhere."""

from __future__ import annotations

from typing import Annotated

import pytest

import servo
from declared import assets_of, later, only_asset
from servo.registry import collecting


def test_each_output_is_an_asset_of_the_same_function() -> None:
    with collecting() as found:

        @servo.multi_asset(
            outputs=[
                servo.AssetSpec("split.early", group="own"),
                servo.AssetSpec("split.late", tags={"a": "b"}),
            ],
            group="shared",
            timeout="1m",
        )
        def split(delays: list[int]) -> tuple[list[int], list[int]]:
            """Early and late."""
            return [d for d in delays if d <= 0], [d for d in delays if d > 0]

    assert split([1, -1]) == ([-1], [1])
    assets = assets_of(found)
    assert list(assets) == ["split/early", "split/late"]
    assert [asset["group"] for asset in assets.values()] == ["own", "shared"]
    for asset in assets.values():
        assert asset["multi"] == {"can_subset": False, "first": "split/early"}
        assert asset["function"] == f"{__name__}:{split.__qualname__}"
        assert asset["description"] == "Early and late."
        assert asset["timeout_ms"] == 60_000
        assert asset["deps"] == [{"parameter": "delays", "type": "list[int]"}]
    assert repr(split.outputs) == "(<output split/early>, <output split/late>)"


def test_an_output_with_deps_of_its_own_has_only_those() -> None:
    with collecting() as found:

        @servo.multi_asset(
            outputs=[
                servo.AssetSpec("m.all"),
                servo.AssetSpec("m.none", deps=[]),
                servo.AssetSpec("m.one", deps=["raw.flights"]),
                servo.AssetSpec("m.mapped", deps=[servo.dep("raw.table", mapping=servo.last())]),
                servo.AssetSpec("m.renamed", deps=[servo.dep("raw.flights", parameter="sky")]),
                servo.AssetSpec("m.extra", deps=["raw.other"]),
            ],
            deps=[servo.dep("raw.weather", parameter="sky", mapping=servo.window(-1, 0))],
            can_subset=True,
        )
        def made(flights: int, sky: int, table: Annotated[int, servo.dep("raw.table")]) -> None:
            raise NotImplementedError((flights, sky, table))

    deps = {key: asset.get("deps") for key, asset in assets_of(found).items()}
    window = {"kind": "window", "from": -1, "to": 0}
    assert deps == {
        "m/all": [
            {"asset": "raw/weather", "parameter": "sky", "type": "int", "mapping": window},
            {"parameter": "flights", "type": "int"},
            {"asset": "raw/table", "parameter": "table", "type": "int"},
        ],
        "m/none": None,
        "m/one": [{"asset": "raw/flights", "parameter": "flights", "type": "int"}],
        "m/mapped": [
            {"asset": "raw/table", "parameter": "table", "type": "int", "mapping": {"kind": "last"}}
        ],
        "m/renamed": [{"asset": "raw/flights", "parameter": "sky", "type": "int", "mapping": window}],
        "m/extra": [{"asset": "raw/other"}],
    }


def test_outputs_are_specs() -> None:
    with collecting(), pytest.raises(TypeError, match=r"^each of multi_asset\(outputs=\) takes AssetSpec"):
        later(servo.multi_asset(outputs=["m.a"]), lambda: None)()  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"^multi_asset\(outputs=\) takes a list of AssetSpec"):
        later(servo.multi_asset, outputs=7)()
    with pytest.raises(TypeError, match=r"^multi_asset\(can_subset=\) takes True or False"):
        later(servo.multi_asset, outputs=[], can_subset=1)()


def test_an_external_asset_has_neither_function_nor_code_version() -> None:
    with collecting() as found:
        made = servo.external(
            "raw.weather",
            group="raw",
            code_version="7",
            deps=[servo.dep("raw.sky", mapping=servo.last()), "raw.sun"],
        )
    assert only_asset(found) == {
        "key": "raw/weather",
        "external": True,
        "group": "raw",
        "deps": [{"asset": "raw/sky", "mapping": {"kind": "last"}}, {"asset": "raw/sun"}],
        "location": {"file": "test.py", "line": made.location.line},
    }
    assert made.location.file == __file__


def test_an_external_asset_may_be_a_spec() -> None:
    spec = servo.AssetSpec("raw.weather", owners=["ops@example.org"])
    with collecting() as found:
        servo.external(spec)
        with pytest.raises(TypeError, match=r"say group in AssetSpec\('raw/weather'\), not beside it$"):
            servo.external(spec, group="raw")
        with pytest.raises(TypeError, match=r"has no function, so no parameter sky: leave it out$"):
            servo.external("raw.a", deps=[servo.dep("raw.b", parameter="sky")])
    assert only_asset(found)["owners"] == ["ops@example.org"]


def test_specs_are_values() -> None:
    assert servo.AssetSpec("raw.a", group="x") == servo.AssetSpec("raw/a", group="x")
    assert servo.AssetSpec("raw.a", group="x") != servo.AssetSpec("raw/a")
    assert len({servo.AssetSpec("raw.a"), servo.AssetSpec("raw.a")}) == 1
