/** A project with something of everything that pages show. */
export const PIPELINE = `
import time
from pathlib import Path

import servo

HERE = Path(__file__).parent
days = servo.DailyPartitions(start="2026-01-01", end="2026-01-31")


@servo.asset(namespace="raw", group="ingest", checks=[servo.row_count(min=1)])
def source(ctx: servo.Context) -> list[int]:
    """Numbers to begin with."""
    ctx.log.info("read three numbers")
    ctx.metadata(total=6)
    return [1, 2, 3]


@servo.asset(namespace="raw", group="ingest", partitions=days)
def readings(ctx: servo.Context) -> list[int]:
    """Readings of a day."""
    ctx.metadata(readings=len(str(ctx.partition)))
    return [1, 2]


class Options(servo.Config):
    """How to tidy."""

    factor: int = 2


@servo.asset(namespace="clean", group="ingest")
def tidy(source: list[int], config: Options) -> list[int]:
    """The numbers, larger."""
    return [number * config.factor for number in source]


@servo.asset(namespace="broken", group="faults", retry=servo.Retry(max_attempts=1))
def divide(ctx: servo.Context) -> float:
    """Never works."""
    ctx.log.info("about to divide")
    zero = 0
    return 1 / zero


@servo.asset(namespace="held", group="faults", quarantine=True, checks=[servo.row_count(min=5, severity="critical")])
def short() -> list[int]:
    """Too short for its check."""
    return [1]


@servo.asset(namespace="slow", group="faults")
def steps(ctx: servo.Context) -> int:
    """Goes on until somebody writes a file."""
    step = 0
    while not (HERE / "finish").exists():
        step += 1
        ctx.log.info("step %s", step)
        time.sleep(0.2)
    return step


@servo.asset(namespace="slow", group="faults")
def loud() -> int:
    """Writes a lot, and ends when somebody writes a file."""
    for number in range(12_000):
        print(f"number {number}")
    while not (HERE / "quiet").exists():
        time.sleep(0.05)
    print("the last line")
    return 1


@servo.asset(namespace="slow", group="faults", partitions=days)
def gated() -> int:
    """Waits for a file before it is made."""
    while not (HERE / "open").exists():
        time.sleep(0.05)
    return 1


@servo.asset(namespace="live", group="ingest")
def moment() -> int:
    """Another number every time."""
    return time.time_ns()


@servo.asset(namespace="live", group="ingest")
def copy(moment: int) -> int:
    """The number, as it was."""
    return moment


@servo.asset(namespace="timely", group="ingest", freshness=servo.Freshness(max_lag="1s"))
def late() -> int:
    """Late a second after it was made."""
    return 1


@servo.asset(namespace="timely", group="ingest", freshness=servo.Freshness(max_lag="7d"))
def fresh() -> int:
    """Good for a week."""
    return 1


@servo.sensor(name="inbox", interval="1h", selection="raw.readings", enabled=False)
def inbox(ctx: servo.SensorContext):
    """Asks for the days that came after its cursor."""
    print("looked at the inbox")
    if ctx.cursor == "2026-01-07":
        return servo.SkipReason("nothing new since 2026-01-07")
    return servo.SensorResult([servo.RunRequest(partition="2026-01-06"), servo.RunRequest(partition="2026-01-07")], cursor="2026-01-07")



@servo.push_sensor(name="orders", selection="raw.source")
def orders(ctx: servo.SensorContext, message: servo.Message):
    """Asks for a run when it is told of an order."""
    return servo.RunRequest(run_key=f"order-{message.data['order']}")


servo.schedule(name="nightly", cron="0 3 * * *", timezone="Europe/Amsterdam", selection="clean.tidy")
servo.schedule(name="resting", cron="0 * * * *", selection="raw.source", enabled=False)
`;
