"""The decorator `@asset`, and what it keeps of the function."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, assert_type

import pytest

import servo
from declared import assets_of, later, only_asset
from servo import Asset, AssetKey
from servo.registry import collecting, current

if TYPE_CHECKING:
    from collections.abc import Callable


def test_an_asset_is_still_the_function_that_makes_it() -> None:
    with collecting() as found:

        @servo.asset(namespace="analytics")
        def delays(flights: list[int], least: int) -> list[int]:
            """Delays by carrier."""
            return [delay for delay in flights if delay > least]

    assert delays([3, 0, 5], least=4) == [5]
    assert_type(delays([3], 4), list[int])
    assert (delays.__name__, delays.__doc__) == ("delays", "Delays by carrier.")
    assert repr(delays) == "<asset analytics/delays>"
    assert found.assets == [delays]


def test_without_parentheses_the_namespace_is_default() -> None:
    with collecting() as found:

        @servo.asset
        def flights() -> int:
            return 1

    assert flights() == 1
    assert only_asset(found)["key"] == "default/flights"


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"name": "delays"}, "default/delays"),
        ({"namespace": "raw"}, "raw/made"),
        ({"namespace": "raw", "name": "delays"}, "raw/delays"),
        ({"key": "raw.delays"}, "raw/delays"),
        ({"key": "raw/delays"}, "raw/delays"),
        ({"key": AssetKey("raw", "delays")}, "raw/delays"),
        ({"key": "not a key"}, "not a key"),
        ({"name": "1.5!"}, "default/1.5!"),
        ({"key": "a.b.c"}, "a/b.c"),
    ],
)
def test_the_key_is_as_written_valid_or_not(options: dict[str, Any], key: str) -> None:
    with collecting() as found:

        @servo.asset(**options)
        def made() -> None: ...

    assert only_asset(found)["key"] == key


def test_the_location_is_the_line_of_the_decorator() -> None:
    def other(function: Callable[[], None]) -> Callable[[], None]:
        return function

    with collecting() as found:

        @other
        @servo.asset(
            namespace="a",
            tags={"team": "ops"},
        )
        @other
        def made() -> None: ...

        @servo.asset
        def bare() -> None: ...

    lines = [definition.location.line for definition in found.assets]
    source = __import__("pathlib").Path(__file__).read_text(encoding="utf-8").splitlines()
    assert [source[line - 1].strip() for line in lines] == ["@servo.asset(", "@servo.asset"]
    assert {definition.location.file for definition in found.assets} == {__file__}


def test_the_lines_of_a_long_module_are_right() -> None:
    source = ["import servo"]
    for each in range(2000):
        source += [
            "@servo.asset(",
            "    namespace='a',",
            ")",
            f"def a{each}(): ...",
            "@servo.asset",
            f"def b{each}(): ...",
        ]
    with collecting() as found:
        exec(compile("\n".join(source), "/long.py", "exec"), {"__name__": "long"})  # noqa: S102 - generated above
    lines = [definition.location.line for definition in found.assets]
    assert lines == [line for each in range(2000) for line in (2 + 6 * each, 6 + 6 * each)]


def test_what_is_not_said_is_not_written() -> None:
    with collecting() as found:

        @servo.asset(
            deps=None,
            tags={},
            owners=[],
            kind=(),
            checks=[],
            secrets={},
            metadata={},
            priority=0,
            isolation="shared",
            quarantine=False,
            compute=servo.Compute(),
            timeout=None,
        )
        def made() -> None: ...

    (line,) = [definition.location.line for definition in found.assets]
    assert only_asset(found) == {
        "key": "default/made",
        "location": {"file": "test.py", "line": line},
        "function": f"{__name__}:{made.__qualname__}",
        "code_version": "v",
    }


def test_an_asset_names_its_queue_and_its_pool() -> None:
    with collecting() as found:

        @servo.asset(queue="gpu", pool="warehouse")
        def made() -> None: ...

    declared = only_asset(found)
    assert (declared["queue"], declared["pool"]) == ("gpu", "warehouse")
    with pytest.raises(TypeError, match="pool= takes"):
        servo.AssetSpec("a.b", pool=4)  # type: ignore[arg-type]


def test_the_description_is_the_first_paragraph_unless_given() -> None:
    with collecting() as found:

        @servo.asset
        def folded() -> None:
            """One paragraph
            on two lines.

            Another.
            """  # noqa: D205

        @servo.asset(description="Given")
        def given() -> None:
            """Not this."""

        @servo.asset
        def blank() -> None:
            """ """  # noqa: D419

    descriptions = {key: asset.get("description") for key, asset in assets_of(found).items()}
    assert descriptions == {
        "default/folded": "One paragraph on two lines.",
        "default/given": "Given",
        "default/blank": None,
    }


def test_exceptions_are_named_by_module_and_class() -> None:
    class Flaky(Exception):  # noqa: N818
        pass

    retry = servo.Retry(retry_on=[ConnectionError, Flaky, "requests.HTTPError"], no_retry_on=(KeyError,))
    assert retry.retry_on == ("ConnectionError", f"{__name__}.{Flaky.__qualname__}", "requests.HTTPError")
    assert retry.no_retry_on == ("KeyError",)


class Flaky(Exception):  # noqa: N818
    """An exception of this module."""


def test_names_of_exceptions_are_those_of_their_classes_in_the_manifest() -> None:
    with collecting() as found:

        @servo.asset(
            retry=servo.Retry(retry_on=["requests.ConnectionError", "Flaky"], no_retry_on=[KeyError])
        )
        def flights() -> None:
            pass

    retry = only_asset(found)["retry"]
    assert retry["retry_on"] == ["requests.exceptions.ConnectionError", f"{__name__}.Flaky"]
    assert retry["no_retry_on"] == ["KeyError"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ConnectionEror", "there is no exception ConnectionEror: did you mean ConnectionError?"),
        ("requests.ConectionError", "there is no exception requests.ConectionError"),
        ("nowhere.Error", "nowhere.Error cannot be found, there is no module nowhere: install it"),
        ("json.loads", "json.loads is no exception, but a function"),
    ],
)
def test_names_of_no_exception_are_an_error_of_the_definition(name: str, message: str) -> None:
    with collecting() as found:

        @servo.asset(retry=servo.Retry(retry_on=[name]))
        def flights() -> None:
            pass

    with pytest.raises(ExceptionGroup) as raised:
        only_asset(found)
    assert f"asset default.flights: retry=: {message}" in str(raised.value.exceptions[0])


def test_a_policy_of_retries_is_written_in_full() -> None:
    assert servo.Retry().to_manifest() == {
        "max_attempts": 3,
        "initial_delay_ms": 2_000,
        "max_delay_ms": 3_600_000,
        "multiplier_ppm": 2_000_000,
        "jitter_ppm": 500_000,
        "retry_on": [],
        "no_retry_on": [],
    }


def test_functions_inside_other_decorators_keep_their_parameters() -> None:
    def timed(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def wrapper(*args: int, **kwargs: int) -> int:
            return function(*args, **kwargs)

        return wrapper

    with collecting() as found:

        @servo.asset
        @timed
        def doubled(flights: int) -> int:
            return flights * 2

    assert doubled(2) == 4
    assert only_asset(found)["deps"] == [{"parameter": "flights", "type": "int"}]


def test_a_factory_can_declare_many() -> None:
    def declare(name: str) -> Asset[[], str]:
        @servo.asset(namespace="made", name=name)
        def made() -> str:
            return name

        return made

    with collecting() as found:
        made = [declare(name) for name in ("b", "a")]
    assert [each() for each in made] == ["b", "a"]
    assert list(assets_of(found)) == ["made/a", "made/b"]


def _function() -> None: ...


def _asset_of(**options: object) -> Callable[[], object]:
    def declare() -> object:
        with collecting():
            decorate: Any = servo.asset
            return decorate(**options)(_function)

    return declare


@pytest.mark.parametrize(
    ("declare", "error", "message"),
    [
        (
            _asset_of(partition=1),
            TypeError,
            r"^asset default\._function has no argument partition=: did you mean partitions=\?$",
        ),
        (
            _asset_of(config={"least": 1}),
            TypeError,
            r"^asset default\._function has no argument config=: annotate a parameter of the function",
        ),
        (
            _asset_of(partitions={"region": servo.StaticPartitions(["eu"])}),
            TypeError,
            r"partitions= takes servo\.MultiPartitions\({…}\) for several dimensions, not the dict",
        ),
        (_asset_of(zzz=1), TypeError, r"has no argument zzz=: it has automation=, checks=, code_version=, "),
        (
            _asset_of(key="a.b", name="b"),
            TypeError,
            r"^asset a.b: give key=, or name= and namespace=, not both$",
        ),
        (_asset_of(key=7), TypeError, r"^AssetSpec\(key\) takes an asset, such as"),
        (_asset_of(name=7), TypeError, r'^asset\(name=\) takes a text, such as "flights", not the int 7$'),
        (_asset_of(namespace=7), TypeError, r"^asset\(namespace=\) takes a text"),
        (
            _asset_of(deps="raw.flights"),
            TypeError,
            r'deps= takes a list of assets, such as \["raw.flights"\]',
        ),
        (_asset_of(deps=[7]), TypeError, r"each of deps= takes an asset"),
        (_asset_of(deps=[servo.dep()]), TypeError, r"deps= has a dep\(\) that names no asset"),
        (_asset_of(partitions=["eu"]), TypeError, r"partitions= takes partitions, such as DailyPartitions"),
        (
            _asset_of(retry=3),
            TypeError,
            r"retry= takes servo.Retry\(max_attempts=3\) or the like, not the int 3$",
        ),
        (_asset_of(freshness="26h"), TypeError, r"freshness= takes servo.Freshness"),
        (_asset_of(renamed_from=7), TypeError, r"renamed_from= takes an asset"),
        (_asset_of(expires_after="soon"), ValueError, r"expires_after= takes a duration"),
        (_asset_of(timeout="soon"), ValueError, r"^asset default\._function: timeout= takes a duration"),
        (
            _asset_of(tags={"team": 7}),
            TypeError,
            r"tags= takes a dict of texts.*, not the int 7 under 'team'",
        ),
        (_asset_of(tags={7: "team"}), TypeError, r"tags= takes a dict of texts.*, not the int 7 under 7"),
        (_asset_of(tags=["team"]), TypeError, r"tags= takes a dict of texts"),
        (_asset_of(owners="ops"), TypeError, r"owners= takes a list of texts"),
        (_asset_of(group=7), TypeError, r"group= takes a text"),
        (_asset_of(kind=[7]), TypeError, r"each of kind= takes a text"),
        (_asset_of(code_version=2), TypeError, r'code_version= takes a text, such as "2"'),
        (_asset_of(compute={"cpu": 1}), TypeError, r"compute= takes servo.Compute"),
        (_asset_of(priority=True), TypeError, r"priority= takes an integer"),
        (_asset_of(quarantine="yes"), TypeError, r"quarantine= takes True or False"),
        (_asset_of(io=7), TypeError, r"io= takes the name of a resource"),
        (later(servo.asset, 7), TypeError, r"^@asset decorates a function, not the int 7$"),
        (
            later(servo.Retry, retry_on="KeyError"),
            TypeError,
            r"^Retry\(retry_on=\) takes exceptions, such as",
        ),
        (later(servo.Retry, retry_on=[int]), TypeError, r"^Retry\(retry_on=\) takes exceptions"),
        (later(servo.dep, "a.b", mapping="same"), TypeError, r"^dep\(mapping=\) takes a mapping"),
    ],
)
def test_arguments_of_another_type_are_refused(
    declare: Callable[[], object], error: type[Exception], message: str
) -> None:
    with collecting(), pytest.raises(error, match=message):
        declare()


def test_a_secret_is_never_shown() -> None:
    secrets: Any = {"TOKEN": "hunter2"}
    with pytest.raises(TypeError, match="never write a secret into code") as refusal:
        servo.AssetSpec("a.a", secrets=secrets)
    assert "hunter2" not in str(refusal.value)
    lone: Any = "hunter2"
    with pytest.raises(TypeError, match="secrets= takes a dict of references") as refusal:
        servo.AssetSpec("a.a", secrets=lone)
    assert "hunter2" not in str(refusal.value)


def test_secrets_are_references() -> None:
    assert servo.SecretRef.file("/run/token") == servo.SecretRef("file", "/run/token")
    assert repr(servo.SecretRef.file("secrets/s")) == "SecretRef(provider='file', path='secrets/s')"
    with pytest.raises(TypeError, match='takes "env" or "file"'):
        servo.SecretRef("vault", "secret/data/flights")


def test_an_asset_is_not_decorated_twice() -> None:
    with collecting():

        @servo.asset
        def flights() -> None: ...

        with pytest.raises(TypeError, match=r"is already <asset default/flights>$"):
            servo.asset(flights)


def test_collecting_ends_with_its_block_even_after_an_error() -> None:
    before = current()
    with pytest.raises(ZeroDivisionError), collecting():
        raise ZeroDivisionError
    assert current() is before


def test_numbers_that_a_manifest_cannot_hold_are_refused_where_they_are_written() -> None:
    for declare, problem in (
        (lambda: servo.AssetSpec("a.b", priority=2**31), r"priority= takes an integer between"),
        (lambda: servo.Retry(max_attempts=-1), r"Retry\(max_attempts=\) takes an integer between 0"),
        (lambda: servo.Compute(cpu=-1), r"Compute\(cpu=\) takes thousandths of a core between 0"),
        (lambda: servo.Compute(gpus=0), r"Compute\(gpus=\) takes an integer between 1"),
        (
            lambda: servo.DailyPartitions(start="2013-01-01", end_offset=2**31),
            r"end_offset= takes an integer",
        ),
        (lambda: servo.window(-(2**63) - 1, 0), r"window\(from_\) takes an integer between"),
    ):
        with pytest.raises(ValueError, match=problem):
            declare()


def test_how_long_something_counts_is_a_duration() -> None:
    spec = servo.AssetSpec("raw.rates", expires_after="30d")
    assert spec.to_manifest() == {"key": "raw/rates", "expires_after_ms": 2_592_000_000}
