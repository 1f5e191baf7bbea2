"""Resources of a process: set up when first needed, kept from task to task, and torn down at its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from servo.advice import words
from servo.runner.errors import USER_CODE_EXCEPTION, TaskError


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

    def __init__(self, registered: Mapping[str, object]) -> None:
        """Take what is registered, by name. Nothing is set up yet."""
        self._registered = dict(registered)
        self._live: dict[str, Any] = {}
        self._process = os.getpid()
        self._of_parent: list[object] = []

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - of a class of the user
        if os.getpid() != self._process:
            self._start_over()
        if name not in self._live:
            if name not in self._registered:
                known = ", ".join(sorted(self._registered)) or "none"
                raise KeyError(
                    f'there is no resource {name}: add servo.resource("{name}", …), there is {known}'
                )
            self._live[name] = _set_up(name, self._registered[name])
        return self._live[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._registered)

    def __len__(self) -> int:
        return len(self._registered)

    def tear_down(self) -> None:
        """Tear down what was set up in this process, the last one first."""
        if os.getpid() != self._process:
            return
        while self._live:
            name, _ = self._live.popitem()
            resource: Any = self._registered[name]
            for method, arguments in (("__exit__", (None, None, None)), ("teardown", ())):
                try:
                    if hasattr(resource, method):
                        getattr(resource, method)(*arguments)
                except BaseException as error:  # noqa: BLE001 - the others have to be torn down too
                    what = f"resource {name} could not be torn down: {type(error).__name__}: {words(error)}"
                    sys.stderr.write(f"{what}\n")

    def _start_over(self) -> None:
        """Set up again in a process that was forked: two processes cannot use the same connection.

        What the parent has set up is kept as it is, since freeing it could close the parent's connections.
        """
        self._of_parent += [self._live]
        resources = self._registered.values()
        self._of_parent += [dict(vars(each)) for each in resources if hasattr(each, "__dict__")]
        self._live = {}
        self._process = os.getpid()


def _set_up(name: str, resource: Any) -> object:  # noqa: ANN401 - as above
    try:
        if hasattr(resource, "setup"):
            waiting = resource.setup()
            if hasattr(waiting, "__await__"):
                if hasattr(waiting, "close"):
                    waiting.close()
                raise TypeError("setup is async: make it a plain function")  # noqa: TRY301 - told as any other
        return resource.__enter__() if hasattr(resource, "__enter__") else resource
    except BaseException as error:
        problem = f"resource {name} could not be set up: {type(error).__name__}: {words(error)}"
        raise TaskError(USER_CODE_EXCEPTION, problem) from error
