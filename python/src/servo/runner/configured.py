"""Resources made of their classes, with values from `servo.toml` and the environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

from servo.config import is_model, is_pydantic
from servo.environment import variable_of
from servo.resources import Secret, set_name
from servo.runner.configuration import ConfigError, config_object, field_names
from servo.typed.hints import field_hints

if TYPE_CHECKING:
    from servo.environment import Settings


def configured(kind: Any, name: str, settings: Settings) -> object:  # noqa: ANN401 - a class of the user
    """Make a resource.

    Raises:
        ConfigError: Its fields are not set, or not as they should be; it says where to set them.

    >>> import dataclasses
    >>> from servo.environment import Settings
    >>> @dataclasses.dataclass
    ... class Warehouse:
    ...     url: str
    ...     most: int = 5
    >>> configured(Warehouse, "warehouse", Settings(resources={"warehouse": {"url": "local.db"}}))
    Warehouse(url='local.db', most=5)
    >>> configured(Warehouse, "warehouse", Settings())
    Traceback (most recent call last):
    servo.runner.configuration.ConfigError: the configuration of the resource warehouse is wrong:
      url is missing: set it under [resources.warehouse] in servo.toml, or SERVO_RESOURCES_WAREHOUSE_URL
    """
    what = f"the resource {name}"
    if not is_model(kind):
        if settings.resources.get(name):
            fix = f"make {kind.__qualname__} a dataclass with these fields"
            raise ConfigError(what, [f"it has no fields, and [resources.{name}] sets some: {fix}"])
        made: object = kind()
        set_name(made, name)
        return made
    names = field_names(kind)
    values: dict[str, object] = dict.fromkeys(settings.resources.get(name, {}))
    problems: list[str] = []
    for field in names:
        try:
            is_set, value = settings.value_of(name, field)
        except LookupError as error:
            problems.append(f"{field} {error.args[0]}")
            continue
        if is_set:
            values[field] = _of_text(value, _annotation(kind, field)) if isinstance(value, str) else value
    if problems:
        raise ConfigError(what, problems)
    try:
        made = config_object(kind, values, what)
    except ConfigError as error:
        raise ConfigError(what, [_placed(problem, name) for problem in error.problems]) from error.__cause__
    set_name(made, name)
    return made


def unknown_settings(kinds: dict[str, type], settings: Settings) -> list[str]:
    """Say which resources and fields are set that there are not.

    >>> from servo.environment import Settings
    >>> unknown_settings({"warehouse": dict}, Settings(resources={"werehouse": {}}))
    ['[resources.werehouse] is of no resource: did you mean warehouse?']
    """
    import difflib  # noqa: PLC0415 - only for projects that set something

    def fix(name: str, known: list[str]) -> str:
        near = difflib.get_close_matches(name, known, n=1)
        return f"did you mean {near[0]}?" if near else f"there is {', '.join(known) or 'none'}"

    problems: list[str] = []
    for name, values in settings.resources.items():
        if name not in kinds:
            problems.append(f"[resources.{name}] is of no resource: {fix(name, sorted(kinds))}")
        elif is_model(kinds[name]):
            fields = field_names(kinds[name])
            unknown = [field for field in values if field not in fields]
            problems += [
                f"[resources.{name}] has {each}, which is no field: {fix(each, fields)}" for each in unknown
            ]
    return problems


def secrets_of(resource: Any) -> list[str]:  # noqa: ANN401 - of the user
    """Give the values of the fields of a resource that must not be shown."""
    fields = getattr(type(resource), "__dataclass_fields__", getattr(type(resource), "model_fields", {}))
    values: list[Any] = [getattr(resource, field, None) for field in fields]
    revealed = [each.get_secret_value() if hasattr(each, "get_secret_value") else each for each in values]
    return [
        str(value)
        for value, shown in zip(revealed, values, strict=True)
        if isinstance(value, Secret) or value is not shown
    ]


def _annotation(kind: Any, field: str) -> object:  # noqa: ANN401 - as above
    if is_pydantic(kind):
        found = kind.model_fields.get(field)
        return object if found is None else found.annotation
    return field_hints(kind).get(field, object)


def _of_text(text: str, annotation: object) -> object:
    """Read a text for a field: as it is for one of text, else as JSON if it is that."""
    kinds = get_args(annotation) or (annotation,)
    if not {int, float, bool, list, dict, tuple, set}.isdisjoint(
        {getattr(kind, "__origin__", kind) for kind in (annotation, *kinds)}
    ):
        try:
            found: object = json.loads(text)
        except ValueError:
            return text
        return found
    return text


def _placed(problem: str, name: str) -> str:
    field, _, rest = problem.partition(" is missing")
    if problem.endswith(" is missing") and not rest:
        place = f"set it under [resources.{name}] in servo.toml, or {variable_of(name, field)}"
        return f"{problem}: {place}"
    return problem
