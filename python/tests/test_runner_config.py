"""Configuration of tasks: made into objects, or refused with everything that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from running import error_of, started, stored

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURED = """
import dataclasses, datetime, enum, pydantic
class Mode(enum.Enum):
    FAST = "fast"
@dataclasses.dataclass
class Place:
    code: str
class Limits(servo.Config):
    url: str
    most: int = 100
    day: datetime.date = datetime.date(2013, 1, 1)
    place: Place | None = None
    mode: Mode = Mode.FAST
@servo.asset
def own(ctx, config: Limits):
    assert ctx.config is config
    return [config.url, config.most, str(config.day), config.place and config.place.code]
class Model(pydantic.BaseModel):
    most: int
@servo.asset
def other(config: Model):
    return config.most
"""


def test_configuration_becomes_an_object(tmp_path: Path) -> None:
    with started(tmp_path, CONFIGURED) as runner:
        config = {"url": "x", "most": 5, "day": "2013-01-02", "place": {"code": "JFK"}, "mode": "FAST"}
        assert runner.run("own", config=config)["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.own") == ["x", 5, "2013-01-02", "JFK"]
        assert runner.run("other", config={"most": 5})["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.other") == 5


@pytest.mark.parametrize(
    ("function", "config", "message"),
    [
        (
            "own",
            {"most": "5", "place": {"cod": 1}, "mst": 1, "mode": "slow", "day": "soon"},
            (
                "the configuration of default.own is wrong:\n"
                "  there is no field mst: did you mean most?\n"
                "  url is missing\n"
                "  most takes an integer, not the text '5'\n"
                "  day takes a date, such as '2013-01-01', not the text 'soon'\n"
                "  there is no field place.cod: did you mean place.code?\n"
                "  place.code is missing\n"
                "  mode takes one of 'fast', not the text 'slow'"
            ),
        ),
        (
            "other",
            {"most": "many", "least": 1},
            (
                "the configuration of default.other is wrong:\n"
                "  there is no field least: there is most\n"
                "  most: Input should be a valid integer, unable to parse string as an integer"
            ),
        ),
        ("other", {}, "the configuration of default.other is wrong:\n  most is missing"),
    ],
)
def test_configuration_that_is_wrong(
    tmp_path: Path, function: str, config: dict[str, object], message: str
) -> None:
    with started(tmp_path, CONFIGURED) as runner:
        error = error_of(runner.run(function, config=config))
        assert error["code"] == "INVALID_DEFINITION"
        assert error["message"] == message


MORE = """
import dataclasses, decimal, pathlib, typing, uuid
@dataclasses.dataclass
class Settings:
    ratio: float = 0.5
    names: tuple[str, ...] = ()
    pair: tuple[int, str] = (1, "a")
    by_name: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    kinds: set[str] = frozenset()
    mode: typing.Literal["fast", "slow"] = "fast"
    either: int | str = 1
    root: pathlib.Path = pathlib.Path()
    price: decimal.Decimal = decimal.Decimal(1)
    run: uuid.UUID | None = None
    anything: typing.Any = None
    odd: complex = 1j
    is_dry: bool = False
    def __post_init__(self):
        if self.ratio > 1:
            raise ValueError("ratio is more than 1")
@servo.asset
def made(config: Settings):
    return repr(config)
"""


def test_values_become_what_annotations_ask_for(tmp_path: Path) -> None:
    given = {
        "ratio": 1,
        "names": ["a"],
        "pair": [2, "b"],
        "by_name": {"a": [1]},
        "kinds": ["x"],
        "mode": "slow",
        "either": "text",
        "root": "/data",
        "price": "1.20",
        "run": "12345678-1234-5678-1234-567812345678",
        "anything": {"a": [1]},
        "is_dry": True,
    }
    with started(tmp_path, MORE) as runner:
        assert runner.run("made", config=given)["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.made") == (
            "Settings(ratio=1.0, names=('a',), pair=(2, 'b'), by_name={'a': [1]}, kinds={'x'}, mode='slow', "
            "either='text', root=PosixPath('/data'), price=Decimal('1.20'), "
            "run=UUID('12345678-1234-5678-1234-567812345678'), anything={'a': [1]}, odd=1j, is_dry=True)"
        )


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"ratio": "1"}, "ratio takes a number, not the text '1'"),
        ({"ratio": True}, "ratio takes a number, not True"),
        ({"ratio": 2}, "Settings is refused: ratio is more than 1"),
        ({"names": "a"}, "names takes a list, not the text 'a'"),
        ({"names": ["a", 1]}, "names[1] takes a text, not 1"),
        ({"pair": [1]}, "pair takes a list of 2, not of 1"),
        ({"by_name": {"a": ["x"]}}, "by_name.a[0] takes an integer, not the text 'x'"),
        ({"by_name": []}, "by_name takes an object with names and values, not the list []"),
        ({"mode": "medium"}, "mode takes one of 'fast', 'slow', not the text 'medium'"),
        ({"either": 1.5}, "either takes an integer, not 1.5 or either takes a text, not 1.5"),
        ({"root": 1}, "root takes a path, as a text, not 1"),
        ({"price": "much"}, "price takes a Decimal, as a text, not the text 'much'"),
        ({"run": "x"}, "run takes a UUID, as a text, not the text 'x'"),
        ({"odd": "1j"}, "odd takes a complex, which cannot be made from JSON, not the text '1j'"),
        ({"is_dry": 1}, "is_dry takes True or False, not 1"),
        ({"is_dry": None}, "is_dry takes True or False, not None"),
    ],
)
def test_values_that_do_not_fit(tmp_path: Path, config: dict[str, object], problem: str) -> None:
    with started(tmp_path, MORE) as runner:
        error = error_of(runner.run("made", config=config))
        assert error["message"] == f"the configuration of default.made is wrong:\n  {problem}"
