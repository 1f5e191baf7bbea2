"""Calling a function, whichever way it gives what it makes: returned, awaited or yielded."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from servo.dependencies import canonical
from servo.results import Output, PartitionFailures
from servo.runner.errors import SCHEMA_VIOLATION, TaskError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from servo.runner.arguments import Arguments
    from servo.runner.functions import Function

    Take = Callable[[str, object, dict[str, object]], None]


def call(function: Function, arguments: Arguments, selected: Sequence[str], take: Take) -> None:
    """Call a function, and hand over each value as soon as it is there.

    Args:
        function: The function.
        arguments: What it is called with.
        selected: The canonical keys of the assets that were asked for.
        take: Is given the asset, its value, and what is said of it. What it raises ends the function.
    """
    taker = _Taker(function, selected, take)
    result: Any = _called(function, arguments)
    if isinstance(result, types.AsyncGeneratorType):
        _run(_taken(result, taker))
        taker.end()
    elif isinstance(result, types.GeneratorType):
        try:
            for value in result:
                taker.yielded(value)
                # Or it would live until the next one is made.
                del value
        finally:
            result.close()
        taker.end()
    else:
        taker.returned(result)


def result_of(function: Function, arguments: Arguments) -> object:
    """Call a function that makes several partitions, and give what it returns, held to its annotation."""
    result: Any = _called(function, arguments)
    if result is not None and not isinstance(result, PartitionFailures | types.GeneratorType):
        _Taker(function, function.outputs, lambda *_taken: None).returned_range(result)
    return result


def _called(function: Function, arguments: Arguments) -> Any:  # noqa: ANN401 - what the user's function gives
    positional, named = arguments.take()
    result: Any = function.call(*positional, **named)
    del positional, named
    return _run(_awaited(result)) if hasattr(result, "__await__") else result


def _run(coroutine: Any) -> object:  # noqa: ANN401 - a coroutine
    import asyncio  # noqa: PLC0415 - slow to import, and few functions are async

    return asyncio.run(coroutine)


async def _awaited(result: Any) -> object:  # noqa: ANN401 - anything that can be awaited
    return await result


async def _taken(values: Any, taker: _Taker) -> None:  # noqa: ANN401 - an async generator
    try:
        async for value in values:
            taker.yielded(value)
            del value
    finally:
        await values.aclose()


class _Taker:
    """Finds out which asset each value is for."""

    def __init__(self, function: Function, selected: Sequence[str], take: Take) -> None:
        self._function = function
        # As declared, whatever order they were asked for in.
        self._selected = [key for key in function.outputs if key in selected]
        self._take = take
        self._taken: set[str] = set()

    def yielded(self, value: object) -> None:
        """Take a value that was yielded."""
        if isinstance(value, Output):
            self._output(value)
            return
        waiting = [key for key in self._selected if key not in self._taken]
        if not waiting:
            if self._function.is_multi:
                problem = f"yields more values than it makes assets, {len(self._selected)}"
            else:
                problem = "yields more than one value: return a list, or declare a @multi_asset"
            raise self._wrong(problem)
        self._give(waiting[0], value, {})

    def end(self) -> None:
        """Refuse a function that ends before it has yielded everything."""
        missing = [key for key in self._selected if key not in self._taken]
        if missing:
            raise self._wrong(f"ended without yielding {_shown(missing)}")

    def returned(self, result: object) -> None:
        """Take what was returned."""
        listed = result if isinstance(result, list | tuple) and result else [result]
        outputs = [each for each in listed if isinstance(each, Output)]
        if len(outputs) == len(listed):
            for each in outputs:
                self._output(each)
        elif not self._function.is_multi:
            self._give(self._selected[0], result, {})
        else:
            self._several(result)
        missing = [key for key in self._selected if key not in self._taken]
        if missing:
            raise self._wrong(f"returned nothing for {_shown(missing)}")

    def returned_range(self, result: object) -> None:
        """Refuse what is not as the function says of several partitions."""
        self._check(self._selected[0], result)

    def _several(self, result: object) -> None:
        """Take what was returned for several assets."""
        if result is None:
            for key in self._selected:
                self._give(key, None, {})
        elif isinstance(result, dict) and self._names_outputs(result):
            self._named(result)
        elif isinstance(result, tuple) or (isinstance(result, list) and len(self._selected) > 1):
            self._in_order(result)
        elif len(self._selected) == 1:
            self._give(self._selected[0], result, {})
        else:
            raise self._wrong(
                f"returned a {type(result).__name__} for {_shown(self._selected)}: return a tuple with a "
                "value for each, a dict by asset, or yield servo.Output(asset, value)"
            )

    def _in_order(self, values: Sequence[object]) -> None:
        """Take a value for each asset that was asked for, or for each that the function makes."""
        for keys in (self._selected, self._function.outputs):
            if len(values) == len(keys):
                for key, value in zip(keys, values, strict=True):
                    if key in self._selected:
                        self._give(key, value, {})
                return
        found = f"returned {len(values)} values for {_shown(self._selected)}"
        raise self._wrong(f"{found}: one for each is wanted")

    def _names_outputs(self, result: dict[object, object]) -> bool:
        return len(self._selected) > 1 or any(self._key(name) is not None for name in result)

    def _named(self, result: dict[object, object]) -> None:
        for name, value in result.items():
            key = self._key(name)
            if key is None:
                raise self._wrong(f"returned {name!r}, which is not one of {_shown(self._function.outputs)}")
            if key in self._selected:
                self._give(key, value, {})

    def _key(self, name: object) -> str | None:
        """Find an asset by its key, or by its name if only one has it."""
        named = getattr(name, "canonical", name)
        if not isinstance(named, str):
            return None
        outputs = self._function.outputs
        if canonical(named) in outputs:
            return canonical(named)
        fitting = [key for key in outputs if key.rpartition("/")[2] == named]
        return fitting[0] if len(fitting) == 1 else None

    def _output(self, output: Output) -> None:
        key = self._key(output.asset)
        if key is None:
            raise self._wrong(
                f"made {_shown([output.asset])}, which is not one of {_shown(self._function.outputs)}"
            )
        # A function that cannot make some of its assets without the others makes them all.
        if key in self._selected:
            self._give(key, output.value, output.metadata)

    def _give(self, key: str, value: object, metadata: dict[str, object]) -> None:
        if isinstance(value, Output):
            metadata, value = {**value.metadata, **metadata}, value.value
        if key in self._taken:
            raise self._wrong(f"made {_shown([key])} twice")
        self._check(key, value)
        self._taken.add(key)
        self._take(key, value, metadata)

    def _check(self, key: str, value: object) -> None:
        """Refuse a value that is not what the function says it returns."""
        if not self._function.says_what_it_returns:
            return
        from servo.typed import problem  # noqa: PLC0415 - only for functions that say it

        found = problem(value, self._function.returned(key))
        if found is None:
            return
        said = self._function.returned_text
        for_one = f" for {_shown([key])}" if self._function.is_multi else ""
        if value is None:
            advice = "return a value, or annotate it as optional, `… | None`"
            raise self._wrong(f"returned None{for_one}, and is annotated `-> {said}`: {advice}")
        found = f"it {found}" if found.startswith(("is ", "has ")) else found
        raise self._wrong(f"returned something else{for_one} than its annotation `-> {said}` says: {found}")

    def _wrong(self, problem: str) -> TaskError:
        return TaskError(SCHEMA_VIOLATION, f"{self._function.shown} {problem}")


def _shown(keys: Sequence[str]) -> str:
    return ", ".join(key.replace("/", ".", 1) for key in keys)
