"""Configuration objects made of the values that a run gives."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from servo.annotations import Annotations
from servo.config import is_field, is_pydantic
from servo.typed.conversion import Refused, convert

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class ConfigError(ValueError):
    """Configuration does not fit the class that describes it; `problems` has everything that is wrong.

    >>> print(ConfigError("raw.flights", ["url is missing", "limit takes an integer, not 'many'"]))
    the configuration of raw.flights is wrong:
      url is missing
      limit takes an integer, not 'many'
    """

    def __init__(self, what: str, problems: list[str]) -> None:
        """Take what it is the configuration of, and the problems."""
        self.problems = problems
        super().__init__("\n  ".join((f"the configuration of {what} is wrong:", *problems)))


def config_object(model: type, values: Mapping[str, object], what: str) -> object:
    """Make a configuration object: a `Config`, a dataclass or a pydantic model.

    Args:
        model: Its class.
        values: JSON values by field.
        what: What it is the configuration of, in messages.

    >>> from servo.config import Config
    >>> class Limits(Config):
    ...     most: int = 100
    >>> config_object(Limits, {"most": 5}, "raw.flights")
    Limits(most=5)
    >>> config_object(Limits, {"mst": "5"}, "raw.flights")
    Traceback (most recent call last):
    servo.runner.configuration.ConfigError: the configuration of raw.flights is wrong:
      there is no field mst: did you mean most?
    """
    if is_pydantic(model):
        return _pydantic(model, values, what)
    problems: list[str] = []
    try:
        made = made_dataclass(model, values, "", problems)
    except Refused as refused:
        raise ConfigError(what, [*problems, str(refused)]) from refused.__cause__
    if problems:
        raise ConfigError(what, problems)
    return made


def field_names(model: Any) -> list[str]:  # noqa: ANN401 - of three kinds
    """Give the names of the fields that values can be given for.

    >>> from servo.config import Config
    >>> class Limits(Config):
    ...     most: int = 100
    >>> field_names(Limits)
    ['most']
    """
    if is_pydantic(model):
        return [field.alias or name for name, field in model.model_fields.items()]
    return [field.name for field in model.__dataclass_fields__.values() if field.init and is_field(field)]


def made_dataclass(model: Any, values: Mapping[str, object], path: str, problems: list[str]) -> object:  # noqa: ANN401 - a dataclass
    """Make a dataclass, and add to the problems; raises `Refused` if the class itself refuses."""
    missing = sys.modules["dataclasses"].MISSING
    names = field_names(model)
    problems += _unknown(values, names, path)
    made: dict[str, object] = {}
    before = len(problems)
    for name, annotation in _annotated(model, names):
        field = model.__dataclass_fields__[name]
        if name in values:
            made[name] = convert(values[name], annotation, f"{path}{name}", problems)
        elif field.default is missing and field.default_factory is missing:
            problems.append(f"{path}{name} is missing")
    if len(problems) > before:
        return None
    try:
        return model(**made)
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise Refused(f"{path.removesuffix('.') or model.__name__} is refused: {kind}{error}") from error


def _annotated(model: type, names: list[str]) -> Iterator[tuple[str, object]]:
    """Give the annotations of fields, each evaluated in the module of the class that has it."""
    annotations = Annotations()
    for name in names:
        home = next((each for each in reversed(model.__mro__) if _has_field(each, name)), model)
        module = sys.modules.get(home.__module__)
        scope = {} if module is None else vars(module)
        given = model.__dataclass_fields__[name].type  # type: ignore[attr-defined]
        yield name, annotations.value(given, scope, None)


def _has_field(model: type, name: str) -> bool:
    return name in getattr(model, "__dataclass_fields__", ())


def _unknown(values: Mapping[str, object], names: list[str], path: str) -> list[str]:
    found = []
    for name in values:
        if name not in names:
            import difflib  # noqa: PLC0415 - only needed to explain a mistake

            near = difflib.get_close_matches(name, names, n=1)
            known = ", ".join(names) or "none"
            fix = f"did you mean {path}{near[0]}?" if near else f"there is {known}"
            found.append(f"there is no field {path}{name}: {fix}")
    return found


def _pydantic(model: Any, values: Mapping[str, object], what: str) -> object:  # noqa: ANN401 - a pydantic model
    names = {*field_names(model), *model.model_fields}
    problems = [] if model.model_config.get("extra") == "allow" else _unknown(values, sorted(names), "")
    try:
        made: object = model.model_validate(dict(values))
    except sys.modules["pydantic"].ValidationError as error:
        for each in error.errors():
            place = ".".join(map(str, each["loc"])) or model.__name__
            is_missing = each["type"] == "missing"
            problems.append(f"{place} is missing" if is_missing else f"{place}: {each['msg']}")
        raise ConfigError(what, problems) from None
    except Exception as error:
        raise ConfigError(what, [f"it is refused: {type(error).__name__}: {error}"]) from error
    if problems:
        raise ConfigError(what, problems)
    return made
