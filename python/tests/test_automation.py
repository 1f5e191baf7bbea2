"""Schedules and sensors, what they return, and resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import servo
from declared import later, manifest_of
from servo.registry import collecting

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_schedule_without_a_function_requests_its_selection() -> None:
    with collecting() as found:
        nightly = servo.schedule(name="nightly", cron="0 2 * * *", selection="raw.*", enabled=False)
    assert manifest_of(found)["schedules"] == [
        {
            "name": "nightly",
            "cron": "0 2 * * *",
            "selection": "raw.*",
            "enabled": False,
            "location": {"file": "test.py", "line": nightly.location.line},
        }
    ]


def test_a_scheduled_function_stays_as_it_is() -> None:
    with collecting() as found:

        @servo.schedule(
            cron="0 6 * * *", timezone="Europe/Amsterdam", tags={"a": "b"}, catch_up_on_resume=True
        )
        def morning(count: int) -> int:
            """Every morning."""
            return count + 1

    assert morning(1) == 2
    assert manifest_of(found)["schedules"] == [
        {
            "name": "morning",
            "cron": "0 6 * * *",
            "timezone": "Europe/Amsterdam",
            "tags": {"a": "b"},
            "catch_up_on_resume": True,
            "description": "Every morning.",
            "function": f"{__name__}:{morning.__qualname__}",
            "location": {"file": "test.py", "line": found.schedules[0].location.line},
        }
    ]
    assert repr(found.schedules) == "[<schedule morning>]"


def test_limits_of_a_schedule_are_written_unless_they_are_the_usual_ones() -> None:
    with collecting() as found:
        servo.schedule(
            name="careful",
            cron="0 2 * * *",
            selection="raw.*",
            config={"limit": 3},
            priority=7,
            catchup_window_minutes=60,
            max_catchup_ticks=100,
            if_running="queue",
            timeout="2m",
        )
    (written,) = manifest_of(found)["schedules"]
    kept = ("config", "priority", "catchup_window_minutes", "max_catchup_ticks", "if_running", "timeout_ms")
    assert [written[name] for name in kept] == [{"limit": "3"}, 7, 60, 100, "queue", 120_000]
    with pytest.raises(TypeError, match='takes "allow", "skip" or "queue"'):
        servo.schedule(name="x", cron="0 2 * * *", if_running="wait")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no JSON"):
        servo.schedule(name="x", cron="0 2 * * *", config={"a": object()})


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ("newest", None),
        ([], None),
        ("missing", {"missing": True}),
        ("failed", {"failed": True}),
        ("stale", {"stale": True}),
        (
            ("2013-01-01", "2013-02-01..", '"a..b"'),
            {"keys": ["2013-01-01", '"a..b"'], "ranges": ["2013-02-01.."]},
        ),
    ],
)
def test_the_partitions_of_a_schedule_are_written_unless_they_are_the_newest(
    partitions: list[str], expected: object
) -> None:
    with collecting() as found:
        servo.schedule(name="some", cron="0 2 * * *", selection="raw.*", partitions=partitions)
    (written,) = manifest_of(found)["schedules"]
    assert written.get("partitions") == expected


def test_a_schedule_has_one_function() -> None:
    with collecting():
        twice = servo.schedule(cron="0 6 * * *")
        assert repr(twice) == "<schedule without a name>"
        twice(test_a_scheduled_function_stays_as_it_is)
        with pytest.raises(TypeError, match=r"^a schedule has one function, and this has test_automation:"):
            twice(test_a_scheduled_function_stays_as_it_is)


def test_sensors_are_sorted_by_name_and_say_whether_they_poll() -> None:
    with collecting() as found:

        @servo.sensor
        def polls(ctx: servo.SensorContext) -> None:
            """Look."""
            raise NotImplementedError(ctx)

        @servo.sensor(interval="5m", name="a_slow_one", selection="raw.*", enabled=False)
        def slow(ctx: servo.SensorContext) -> None:
            raise NotImplementedError(ctx)

        @servo.push_sensor
        def listens(ctx: servo.SensorContext, message: object) -> None:
            raise NotImplementedError((ctx, message))

    sensors = manifest_of(found)["sensors"]
    for sensor in sensors:
        del sensor["location"], sensor["function"]
    assert sensors == [
        {"name": "a_slow_one", "interval_ms": 300_000, "selection": "raw.*", "enabled": False},
        {"name": "listens", "push": True},
        {"name": "polls", "description": "Look."},
    ]


@pytest.mark.parametrize(
    ("declare", "error", "message"),
    [
        (later(servo.schedule, cron=6), TypeError, r"^schedule\(cron=\) takes a text, such as"),
        (
            later(servo.schedule, cron="", timezone=1),
            TypeError,
            r"^schedule\(timezone=\) takes the name of a time",
        ),
        (later(servo.schedule, cron="", name=1), TypeError, r"^schedule\(name=\) takes a text"),
        (later(servo.schedule, cron="", selection=["a"]), TypeError, r"^schedule\(selection=\) takes a text"),
        (later(servo.schedule, cron="", enabled=1), TypeError, r"^schedule\(enabled=\) takes True or False"),
        (later(servo.schedule(cron=""), 7), TypeError, r"^@schedule decorates a function, not the int 7$"),
        (later(servo.sensor, interval="soon"), ValueError, r"^sensor\(interval=\) takes a duration"),
        (later(servo.sensor, 7), TypeError, r"^@sensor decorates a function, not the int 7$"),
        (later(servo.sensor, name=7), TypeError, r"^sensor\(name=\) takes a text"),
        (later(servo.push_sensor, description=7), TypeError, r"^push_sensor\(description=\) takes a text"),
        (later(servo.RunRequest, selection=7), TypeError, r"^RunRequest\(selection=\) takes a text"),
        (
            later(servo.RunRequest, partition=7),
            TypeError,
            r"^RunRequest\(partition=\) takes the key of a partition",
        ),
        (later(servo.RunRequest, run_key=7), TypeError, r"^RunRequest\(run_key=\) takes a text"),
        (later(servo.RunRequest, tags=7), TypeError, r"^RunRequest\(tags=\) takes a dict of texts"),
        (later(servo.RunRequest, config=7), TypeError, r"^RunRequest\(config=\) takes a dict of values"),
        (
            later(servo.SensorResult, 7),
            TypeError,
            r"^SensorResult\(run_requests=\) takes a list of RunRequest",
        ),
        (
            later(servo.SensorResult, ["a"]),
            TypeError,
            r"^each of SensorResult\(run_requests=\) takes a RunRequest",
        ),
        (later(servo.SensorResult, cursor=7), TypeError, r"^SensorResult\(cursor=\) takes a text"),
        (later(servo.SkipReason, 7), TypeError, r"^SkipReason takes a text"),
        (later(servo.resource, 7, servo.Resource()), TypeError, r"^resource\(name\) takes a text"),
        (
            later(servo.resource, "db", 7),
            TypeError,
            r"a class that is based on servo.Resource, or one of these, not the",
        ),
        (
            later(servo.resource, "db", servo.Resource, scope="run"),
            TypeError,
            r'scope=\) takes "runner" or "task"',
        ),
    ],
)
def test_arguments_of_another_type_are_refused(
    declare: Callable[[], object], error: type[Exception], message: str
) -> None:
    with collecting(), pytest.raises(error, match=message):
        declare()


def test_requests_and_results_are_values() -> None:
    request = servo.RunRequest(
        selection="raw.*", partition="2013-01-01", tags={"a": "b"}, config={"limit": 1}
    )
    assert request == servo.RunRequest(
        selection="raw.*", partition="2013-01-01", tags={"a": "b"}, config={"limit": 1}
    )
    assert len({request, request}) == 1
    result = servo.SensorResult([request], cursor="7")
    assert (result.run_requests, result.cursor, result.skip) == ((request,), "7", None)
    assert servo.SensorResult(skip="nothing new").skip == servo.SkipReason("nothing new")


def test_a_resource_knows_its_name_even_if_it_is_frozen() -> None:
    @dataclass(frozen=True)
    class Lake(servo.Resource):
        url: str

    with collecting() as found:
        lake = servo.resource("lake", Lake("s3://lake"))
        unnamed: Any = Lake("s3://other")
        assert servo.AssetSpec("a.a", io=lake).io == "lake"
        with pytest.raises(TypeError, match="io= takes the name of a resource"):
            servo.AssetSpec("a.a", io=unnamed)
    assert (lake.name, lake.url) == ("lake", "s3://lake")
    assert manifest_of(found)["resources"] == [{"name": "lake", "type": f"{__name__}.{Lake.__qualname__}"}]
