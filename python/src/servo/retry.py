"""How often a failed attempt is made again, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servo.arguments import integer, parts_per_million, sequence, wrong
from servo.durations import milliseconds
from servo.exception_names import OfClass, bases_of, name_of, resolved
from servo.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from servo.durations import Duration


class Retry(Frozen):
    """When to try again after a failure.

    >>> Retry(max_attempts=5, delay="30s", retry_on=[ConnectionError, "psycopg.OperationalError"]).retry_on
    ('ConnectionError', 'psycopg.OperationalError')
    """

    __slots__ = (
        "initial_delay_ms",
        "jitter_ppm",
        "max_attempts",
        "max_delay_ms",
        "multiplier_ppm",
        "no_retry_on",
        "retry_on",
    )
    max_attempts: int
    initial_delay_ms: int
    max_delay_ms: int
    multiplier_ppm: int
    jitter_ppm: int
    retry_on: tuple[str, ...]
    no_retry_on: tuple[str, ...]

    def __init__(  # noqa: PLR0913 - each is named
        self,
        max_attempts: int = 3,
        *,
        delay: Duration = "2s",
        max_delay: Duration = "1h",
        backoff: float = 2.0,
        jitter: float = 0.5,
        retry_on: Sequence[type[BaseException] | str] = (),
        no_retry_on: Sequence[type[BaseException] | str] = (),
    ) -> None:
        """Say how often and when.

        Args:
            max_attempts: How many attempts there are in all, the first included.
            delay: How long to wait after the first failure.
            max_delay: The longest wait.
            backoff: By what each wait is longer than the one before.
            jitter: The largest part of a wait that chance takes away, so that many failures do not come back
                at once.
            retry_on: Exceptions to try again after, as classes or names; none: all of them. As of `except`,
                a class stands for those that are based on it.
            no_retry_on: Exceptions to give up after at once.
        """
        self._set(
            max_attempts=integer("Retry(max_attempts=)", max_attempts, 0),
            initial_delay_ms=milliseconds("Retry(delay=)", delay),
            max_delay_ms=milliseconds("Retry(max_delay=)", max_delay),
            multiplier_ppm=parts_per_million("Retry(backoff=)", backoff),
            jitter_ppm=parts_per_million("Retry(jitter=)", jitter),
            retry_on=_names("Retry(retry_on=)", retry_on),
            no_retry_on=_names("Retry(no_retry_on=)", no_retry_on),
        )

    def is_retried(self, kind: type[BaseException]) -> bool:
        """Say whether an exception of a class is tried again after, as far as this says."""
        names = {name_of(kind), *bases_of(kind)}
        wanted = not self.retry_on or not names.isdisjoint(map(_known, self.retry_on))
        return wanted and names.isdisjoint(map(_known, self.no_retry_on))

    def wait_after(self, attempt: int) -> float:
        """Give how many seconds to wait after an attempt that failed, without chance.

        >>> Retry(delay="1s", max_delay="3s").wait_after(3)
        3.0
        """
        grown = self.initial_delay_ms * (self.multiplier_ppm / 1_000_000) ** (attempt - 1)
        return min(grown, self.max_delay_ms) / 1000

    def to_manifest(self, scope: Mapping[str, object] | None = None) -> dict[str, object]:
        """Give the policy as the manifest has it; `scope` has the names of the module around.

        Raises:
            LookupError: It names an exception that does not exist.
        """
        return {
            "max_attempts": self.max_attempts,
            "initial_delay_ms": self.initial_delay_ms,
            "max_delay_ms": self.max_delay_ms,
            "multiplier_ppm": self.multiplier_ppm,
            "jitter_ppm": self.jitter_ppm,
            "retry_on": [resolved(name, scope or {}) for name in self.retry_on],
            "no_retry_on": [resolved(name, scope or {}) for name in self.no_retry_on],
        }


def _known(name: str) -> str:
    """Give the name that errors have; one of no exception stays as it is."""
    try:
        return resolved(name, {})
    except LookupError:
        return name


def _names(argument: str, value: object) -> tuple[str, ...]:
    wanted = 'exceptions, such as [ConnectionError] or ["requests.HTTPError"]'
    entries = (value,) if isinstance(value, type) else sequence(argument, value, wanted)
    return tuple(_name(argument, entry, wanted) for entry in entries)


def _name(argument: str, entry: object, wanted: str) -> str:
    if isinstance(entry, str):
        return entry
    if isinstance(entry, type) and issubclass(entry, BaseException):
        return OfClass(name_of(entry))
    raise wrong(argument, entry, wanted)
