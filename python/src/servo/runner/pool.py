"""Resources of a process: made and set up when first needed, kept as long as they are meant to, torn down."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from servo.advice import words
from servo.environment import Settings
from servo.location import here
from servo.resources import RegisteredResource
from servo.runner.errors import INVALID_DEFINITION, USER_CODE_EXCEPTION, TaskError


class _Live(NamedTuple):
    """A resource that is set up."""

    resource: Any
    """The object whose methods set it up and tear it down."""
    given: Any
    """The object that functions are given."""
    secrets: list[str]


class Pool(Mapping[str, Any]):
    """Resources by name.

    >>> import servo
    >>> class Connection(servo.Resource):
    ...     def setup(self) -> None:
    ...         print("connect")
    ...     def teardown(self) -> None:
    ...         print("disconnect")
    >>> pool = Pool({"db": Connection()})
    >>> pool["db"] is pool["db"]
    connect
    True
    >>> pool.tear_down()
    disconnect
    """

    def __init__(self, registered: Mapping[str, object], settings: Settings | None = None) -> None:
        """Take resources by name, or what is registered of them. Nothing is set up yet."""
        self._registered = {
            name: each if isinstance(each, RegisteredResource) else RegisteredResource(name, each, here())
            for name, each in registered.items()
        }
        self._settings = Settings() if settings is None else settings
        self._live: dict[str, _Live] = {}
        self._process = os.getpid()
        self._of_parent: list[object] = []
        self.hide: Callable[[Iterable[str]], None] | None = None
        """Is told the secrets of resources as they are made."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - of a class of the user
        if os.getpid() != self._process:
            self._start_over()
        if name not in self._live:
            if name not in self._registered:
                known = ", ".join(sorted(self._registered)) or "none"
                raise KeyError(
                    f'there is no resource {name}: add servo.resource("{name}", …), there is {known}'
                )
            self._live[name] = self._set_up(self._registered[name])
        return self._live[name].given

    def __iter__(self) -> Iterator[str]:
        return iter(self._registered)

    def __len__(self) -> int:
        return len(self._registered)

    @property
    def kinds(self) -> dict[str, type]:
        """The classes of resources by name."""
        return {name: each.kind for name, each in self._registered.items()}

    @property
    def secrets(self) -> list[str]:
        """The secrets of all that are set up."""
        return [secret for live in self._live.values() for secret in live.secrets]

    def tear_down(self, scope: str | None = None) -> None:
        """Tear down what was set up in this process, the last one first; perhaps only what is of a scope."""
        if os.getpid() != self._process:
            return
        for name in reversed([*self._live]):
            if scope is None or self._registered[name].scope == scope:
                _tear_down(name, self._live.pop(name).resource)

    def _start_over(self) -> None:
        """Set up again in a process that was forked: two processes cannot use the same connection.

        What the parent has set up is kept as it is, since freeing it could close the parent's connections.
        """
        self._of_parent += [self._live]
        resources = [each.given for each in self._registered.values()]
        self._of_parent += [dict(vars(each)) for each in resources if hasattr(each, "__dict__")]
        self._live = {}
        self._process = os.getpid()

    def _set_up(self, registered: RegisteredResource) -> _Live:
        attempt = 1
        while True:
            try:
                return self._tried(registered)
            except TaskError as error:
                wait = _wait(registered, error, attempt)
                if wait is None:
                    raise
                sys.stderr.write(f"{error}: attempt {attempt}, the next one in {wait:g} s\n")
                time.sleep(wait)
                attempt += 1

    def _tried(self, registered: RegisteredResource) -> _Live:
        name, resource = registered.name, registered.given
        secrets: list[str] = []
        if isinstance(resource, type) or hasattr(type(resource), "__dataclass_fields__"):
            from servo.runner.configured import secrets_of  # noqa: PLC0415 - only for those that have fields

            resource = self._made(resource, name) if isinstance(resource, type) else resource
            secrets = secrets_of(resource)
            if secrets and self.hide is not None:
                self.hide([*self.secrets, *secrets])
        try:
            if hasattr(resource, "setup"):
                waiting = resource.setup()
                if hasattr(waiting, "__await__"):
                    if hasattr(waiting, "close"):
                        waiting.close()
                    raise TypeError("setup is async: make it a plain function")  # noqa: TRY301 - told as any other
            given = resource.__enter__() if hasattr(resource, "__enter__") else resource
        except BaseException as error:
            problem = f"resource {name} could not be set up: {type(error).__name__}: {words(error)}"
            raise TaskError(USER_CODE_EXCEPTION, problem) from error
        return _Live(resource, given, secrets)

    def _made(self, kind: type, name: str) -> object:
        from servo.runner.configuration import ConfigError  # noqa: PLC0415 - only for those that are made
        from servo.runner.configured import configured  # noqa: PLC0415 - as above

        try:
            return configured(kind, name, self._settings)
        except ConfigError as error:
            advice = f"mend [resources.{name}] in servo.toml, or the variable that sets it, and run it again"
            raise TaskError(INVALID_DEFINITION, str(error), advice) from error.__cause__


def _wait(registered: RegisteredResource, error: TaskError, attempt: int) -> float | None:
    """Give the seconds to wait before setting it up is tried again, if it is."""
    policy = registered.retry
    cause = error.__cause__
    if policy is None or cause is None or error.code != USER_CODE_EXCEPTION or attempt >= policy.max_attempts:
        return None
    return policy.wait_after(attempt) if policy.is_retried(type(cause)) else None


def _tear_down(name: str, resource: Any) -> None:  # noqa: ANN401 - of the user
    for method, arguments in (("__exit__", (None, None, None)), ("teardown", ())):
        try:
            if hasattr(resource, method):
                getattr(resource, method)(*arguments)
        except BaseException as error:  # noqa: BLE001 - the others have to be torn down too
            what = f"resource {name} could not be torn down: {type(error).__name__}: {words(error)}"
            sys.stderr.write(f"{what}\n")
