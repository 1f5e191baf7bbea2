"""Configuration of an asset: typed values that a run may set."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, dataclass_transform

if TYPE_CHECKING:
    from servo.annotations import Annotations


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Config:
    """The base of configuration classes. A subclass is a frozen dataclass without being told.

    >>> class Limits(Config):
    ...     most: int = 100
    >>> Limits(most=5)
    Limits(most=5)
    """

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401 - whatever other bases take
        """Make the subclass a dataclass."""
        import dataclasses  # noqa: PLC0415 - slow to import, and not every project has configuration

        super().__init_subclass__(**options)
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)


def is_config(annotation: object) -> bool:
    """Say whether a parameter with this annotation is configuration, whatever its name.

    >>> is_config(Config), is_config(int)
    (True, False)
    """
    return isinstance(annotation, type) and issubclass(annotation, Config)


def is_model(annotation: object) -> bool:
    """Say whether a parameter `config` may have this annotation: a dataclass or a pydantic model.

    >>> is_model(dict)
    False
    """
    return isinstance(annotation, type) and (
        hasattr(annotation, "__dataclass_fields__") or is_pydantic(annotation)
    )


def config_fields(model: Any, annotations: Annotations) -> list[dict[str, object]]:  # noqa: ANN401 - of three kinds
    """Describe the fields of a configuration class, in the order in which they are written.

    >>> from servo.annotations import Annotations
    >>> class Limits(Config):
    ...     most: int = 100
    >>> config_fields(Limits, Annotations())
    [{'name': 'most', 'type': 'int', 'required': False, 'default': '100'}]
    """
    if is_pydantic(model):
        return [_pydantic_field(name, field, annotations) for name, field in model.model_fields.items()]
    fields = getattr(model, "__dataclass_fields__", {})
    return [
        _dataclass_field(field, annotations) for field in fields.values() if field.init and is_field(field)
    ]


def is_pydantic(model: type) -> bool:
    """Say whether a class is a pydantic model.

    >>> is_pydantic(Config)
    False
    """
    # A model exists only once pydantic is loaded.
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(model, pydantic.BaseModel)


def is_field(field: Any) -> bool:  # noqa: ANN401 - dataclasses.Field, which is not imported
    """Say whether a value can be given for it."""
    # Class variables are kept among the fields, marked as such.
    return field._field_type is not sys.modules["dataclasses"]._FIELD_CLASSVAR  # noqa: SLF001


def _dataclass_field(field: Any, annotations: Annotations) -> dict[str, object]:  # noqa: ANN401 - as above
    missing = sys.modules["dataclasses"].MISSING
    required = field.default is missing and field.default_factory is missing
    factory = None if field.default_factory is missing else field.default_factory
    default = _default(missing if field.default is missing else field.default, missing, factory)
    return _field(
        field.name,
        annotations.text(field.type),
        default,
        field.metadata.get("description"),
        required=required,
    )


def _pydantic_field(name: str, field: Any, annotations: Annotations) -> dict[str, object]:  # noqa: ANN401 - FieldInfo
    required = field.is_required()
    missing = field.default if required or field.default_factory is not None else object()
    default = _default(field.default, missing, field.default_factory)
    return _field(name, annotations.text(field.annotation), default, field.description, required=required)


def _field(
    name: str, type_: str, default: str | None, description: object, *, required: bool
) -> dict[str, object]:
    found: dict[str, object] = {"name": name, "type": type_, "required": required}
    if default is not None:
        found["default"] = default
    if isinstance(description, str):
        found["description"] = description
    return found


def _default(value: object, missing: object, factory: object) -> str | None:
    """Give a default as JSON, or None if there is none or it has no JSON."""
    if value is missing:
        # Any other factory may give something else in every process.
        if factory not in {list, dict, set, tuple}:
            return None
        value = {} if factory is dict else []
    import json  # noqa: PLC0415 - slow to import, and not every project has configuration

    try:
        return json.dumps(
            value,
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
            default=_json_of,
        )
    except (TypeError, ValueError):
        return None


def _json_of(value: object) -> object:
    if isinstance(value, set | frozenset):
        return sorted(value)
    for method in ("isoformat", "__fspath__"):
        if hasattr(value, method):
            return getattr(value, method)()
    plain = getattr(value, "value", None)
    if isinstance(plain, str | int):
        return plain
    raise TypeError
