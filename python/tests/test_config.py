"""Configuration of assets."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pydantic
import pytest

import servo
from declared import manifest_of, only_asset
from servo.registry import collecting

if TYPE_CHECKING:
    from collections.abc import Callable


class Size(enum.Enum):
    """How much."""

    SMALL = "small"


class Everything(servo.Config):
    """Fields of many types."""

    kind: ClassVar[str] = "not a field"
    url: str
    limit: int = 10
    ratio: float = 0.5
    day: dt.date = dt.date(2013, 1, 1)
    path: Path = Path("/data")
    size: Size = Size.SMALL
    names: list[str] = dataclasses.field(default_factory=list)
    token: str = dataclasses.field(default_factory=lambda: str(object()))
    odd: object = dataclasses.field(default=object, metadata={"description": "Anything"})


@dataclasses.dataclass
class Plain:
    """A dataclass of the user's."""

    limit: int = 10


class Model(pydantic.BaseModel):
    """A pydantic model."""

    url: str = pydantic.Field(description="From where")
    limit: int = 10
    names: list[str] = pydantic.Field(default_factory=list)


def fields_of(config: Any, name: str = "config") -> list[dict[str, Any]]:  # noqa: ANN401
    def made(config: object) -> None:
        raise NotImplementedError(config)

    code = made.__code__.replace(co_varnames=(name,))
    function: Callable[..., None] = made
    made.__code__ = code
    made.__annotations__ = {name: config}
    with collecting() as found:
        servo.asset(name="made")(function)
    asset = only_asset(found)
    fields: list[dict[str, Any]] = asset["config"]["fields"]
    assert "deps" not in asset
    return fields


def test_a_config_is_a_frozen_dataclass() -> None:
    config = Everything(url="x", limit=3)
    assert (config.url, config.limit, config.names) == ("x", 3, [])
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.limit = 4  # type: ignore[misc]


def test_fields_have_types_and_defaults_as_json_where_they_have_any() -> None:
    assert fields_of(Everything) == [
        {"name": "url", "type": "str", "required": True},
        {"name": "limit", "type": "int", "required": False, "default": "10"},
        {"name": "ratio", "type": "float", "required": False, "default": "0.5"},
        {"name": "day", "type": "dt.date", "required": False, "default": '"2013-01-01"'},
        {"name": "path", "type": "Path", "required": False, "default": '"/data"'},
        {"name": "size", "type": "Size", "required": False, "default": '"small"'},
        {"name": "names", "type": "list[str]", "required": False, "default": "[]"},
        {"name": "token", "type": "str", "required": False},
        {"name": "odd", "type": "object", "required": False, "description": "Anything"},
    ]


def test_a_config_is_known_by_its_class_whatever_the_parameter_is_called() -> None:
    assert fields_of(Everything, "settings") == fields_of(Everything)
    assert fields_of(servo.Config, "settings") == []


def test_dataclasses_and_pydantic_models_are_configuration_of_a_parameter_config() -> None:
    assert fields_of(Plain) == [{"name": "limit", "type": "int", "required": False, "default": "10"}]
    assert fields_of(Model) == [
        {"name": "url", "type": "str", "required": True, "description": "From where"},
        {"name": "limit", "type": "int", "required": False, "default": "10"},
        {"name": "names", "type": "list[str]", "required": False, "default": "[]"},
    ]


def test_elsewhere_they_are_the_data_of_assets() -> None:
    with collecting() as found:

        @servo.asset
        def made(rows: Plain) -> None:
            raise NotImplementedError(rows)

    assert only_asset(found)["deps"] == [{"parameter": "rows", "type": "Plain"}]


def test_a_class_inside_a_function_is_found() -> None:
    class Local(servo.Config):
        limit: int = 1

    with collecting() as found:

        @servo.asset
        def made(config: Local) -> None:
            raise NotImplementedError(config)

    assert only_asset(found)["config"]["fields"][0]["name"] == "limit"


def test_an_asset_has_one_configuration() -> None:
    with collecting() as found:

        @servo.asset
        def made(config: Plain, settings: Everything) -> None:
            raise NotImplementedError((config, settings))

    with pytest.raises(ExceptionGroup) as raised:
        manifest_of(found)
    assert "config and settings: put their fields into one class" in str(raised.value.exceptions[0])
