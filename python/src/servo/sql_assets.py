"""Assets that a query makes."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

from servo.arguments import text, text_keys
from servo.asset_entries import asset_entry
from servo.asset_spec import AssetSpec
from servo.dependencies import Dep
from servo.errors import DeclarationError
from servo.functions import Declared
from servo.location import Location, user_frame
from servo.registry import current

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FunctionType
    from typing import Unpack

    from servo.attributes import Attributes
    from servo.keys import AssetKey
    from servo.manifest import ManifestContext
    from servo.sql.template import Template

_TABLE: Final = "servo.storage.duckdb_.DuckSource"
_TAKEN: Final = ("ctx", "context", "partition", "config")


class SqlAsset:
    """An asset that a query makes. Call it in tests, with a table for each asset that it reads."""

    def __init__(
        self,
        spec: AssetSpec,
        template: Template,
        tables: Mapping[str, str],
        config: Mapping[str, object],
        declared_in: tuple[str, Location],
    ) -> None:
        """Take what is said of the asset, its query, defaults of its configuration, and where that is."""
        self.template = template
        self.config = dict(config)
        self.tables = tables
        """By parameter: the name of the asset in the query."""
        self.spec = spec
        self.declared = _SqlDeclared(self, *declared_in)

    @property
    def key(self) -> str:
        """The canonical key, as the user wrote it."""
        return self.spec.key

    @property
    def location(self) -> Location:
        """Where it is declared."""
        return self.declared.location

    def __call__(
        self, *, partition: object = None, config: Mapping[str, object] | None = None, **tables: object
    ) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Run the query over tables of any library or lists of rows, and give a table of pyarrow.

        Args:
            partition: What `{{ partition }}` stands for; a dict if it has several dimensions.
            config: Values of the configuration, in place of the defaults.
            **tables: What stands for each asset, by its name.
        """
        missing = [name for name in self.tables if name not in tables]
        if missing:
            raise TypeError(f"{self!r} reads {', '.join(self.tables)}, and is given no {missing[0]}=")
        return self.run(partition, {**self.config, **(config or {})}, tables).read_all()

    def run(self, partition: object, config: Mapping[str, object], tables: Mapping[str, object]) -> Any:  # noqa: ANN401 - as above
        """Run the query, and give a stream of batches of pyarrow."""
        from servo.sql.running import run, values_of  # noqa: PLC0415 - not needed to declare

        named = {name: tables[parameter] for parameter, name in self.tables.items()}
        return run(self.template, named, values_of(self.template, partition, config))

    def to_manifest(self, context: ManifestContext) -> dict[str, object]:
        """Give its entry in the manifest."""
        found = asset_entry(self.spec, self.declared, self.spec.deps or (), context)
        for dep in found.get("deps", []):  # type: ignore[attr-defined]
            dep.pop("type", None)
        fields = [self._field(path[1]) for path in self.template.values.values() if path[0] == "config"]
        if fields:
            found["config"] = {"fields": fields}
        return found

    def _field(self, name: str) -> dict[str, object]:
        if name not in self.config:
            return {"name": name, "type": "object", "required": True}
        import json  # noqa: PLC0415 - slow to import, and not every project has configuration

        default = self.config[name]
        # A default of 15 does not mean that 15.5 makes no sense.
        kind = float if type(default) is int else type(default)
        return {
            "name": name,
            "type": kind.__name__,
            "required": False,
            "default": json.dumps(default, ensure_ascii=False),
        }

    def __repr__(self) -> str:
        return f"<asset {self.key}>"


class _SqlDeclared(Declared):
    """The query as a function: of the context, and of a table for each asset that it reads."""

    __slots__ = ("_asset", "_module")

    def __init__(self, asset: SqlAsset, module: str, location: Location) -> None:
        self._asset = asset
        self._module = module
        self.function = self.plain = _function(asset)
        self.parameters = ("ctx", *asset.tables)
        self.optional = ()
        self.nearer = {}
        self.location = location

    @property
    def name(self) -> str:
        """`module:name`, of the variable that holds the asset, or else of the asset itself."""
        members = vars(sys.modules[self._module]) if self._module in sys.modules else {}
        name = self._asset.key.rpartition("/")[2]
        if members.get(name) is not self._asset:
            name = next((each for each, value in members.items() if value is self._asset), name)
        return f"{self._module}:{name}"


def sql_asset(
    key: str | AssetKey,
    query: str,
    *,
    config: Mapping[str, object] | None = None,
    **attributes: Unpack[Attributes],
) -> SqlAsset:
    """Declare that a query makes an asset; DuckDB runs it.

    In the query `{{ analytics.delays }}` is the table of another asset, which it depends on for that;
    `{{ partition }}`, `{{ partition.region }}`, `{{ partition.start }}` and `{{ partition.end }}` are values
    of the partition that is made, and `{{ config.limit }}` is one of the configuration.

    Args:
        key: The key of the asset, such as `analytics.top_carriers`.
        query: One SELECT.
        config: Defaults of values of the configuration.
        **attributes: As of `asset`. An entry of `deps` for an asset in the query says which of its
        partitions.

    Raises:
        DeclarationError: The query cannot be read.

    >>> from servo.registry import collecting
    >>> with collecting():
    ...     query = "select * from {{ raw.flights }} where delay > {{ config.least }}"
    ...     late = sql_asset("analytics.late", query, config={"least": 15})
    >>> late, late.declared.parameters
    (<asset analytics/late>, ('ctx', 'flights'))
    """
    frame = user_frame()
    location = Location.of(frame)
    from servo.sql.template import TemplateError, read  # noqa: PLC0415 - not every project has queries

    text("sql_asset(query)", query, "select * from {{ raw.flights }}")
    defaults = text_keys("sql_asset(config=)", config)
    try:
        template = read(query)
    except TemplateError as error:
        raise DeclarationError(location, f"asset {key}: {error}") from None
    _check(key, template, defaults, attributes, location)
    if attributes.get("kind") is None:
        attributes["kind"] = "sql"
    if attributes.get("code_version") is None:
        attributes["code_version"] = _code_version(template, defaults)
    module = frame.f_globals.get("__name__", "__main__")
    tables = _parameters(template)
    attributes["deps"] = _deps(AssetSpec(key, **attributes), template, tables)
    found = SqlAsset(AssetSpec(key, **attributes), template, tables, defaults, (module, location))
    current().assets.append(found)
    return found


def _check(
    key: object,
    template: Template,
    defaults: Mapping[str, object],
    attributes: Mapping[str, object],
    location: Location,
) -> None:
    asked = {path[1] for path in template.values.values() if path[0] == "config"}
    unused = [name for name in defaults if name not in asked]
    if unused:
        problem = f"config= has {unused[0]}, and the query has no {{{{ config.{unused[0]} }}}}"
        raise DeclarationError(location, f"asset {key}: {problem}")
    if attributes.get("partitions") is None and any(
        path[0] == "partition" for path in template.values.values()
    ):
        problem = "the query has {{ partition }}, and the asset has no partitions: give it partitions="
        raise DeclarationError(location, f"asset {key}: {problem}")


def _code_version(template: Template, defaults: Mapping[str, object]) -> str:
    import json  # noqa: PLC0415 - as above

    from servo.sha256 import sha256_hex  # noqa: PLC0415 - not every project has queries

    meaning = json.dumps([template.normalized, dict(defaults)], sort_keys=True, default=str)
    return f"sha256:{sha256_hex(meaning.encode())}"


def _parameters(template: Template) -> dict[str, str]:
    """Name a parameter for each asset: like the asset, or with its namespace where that is not enough."""
    short = [name.rpartition(".")[2] for name in template.assets]
    found: dict[str, str] = {}
    for name, last in zip(template.assets, short, strict=True):
        is_clear = short.count(last) == 1 and last not in _TAKEN
        found[re.sub(r"\W", "_", last if is_clear else name)] = name
    return found


def _deps(spec: AssetSpec, template: Template, tables: Mapping[str, str]) -> tuple[Dep, ...]:
    """Give the assets in the query, as `deps=` has them where it does, and then the others in `deps=`."""
    declared = list(spec.deps or ())
    found = []
    for parameter, name in tables.items():
        key = template.assets[name]
        same = [dep for dep in declared if dep.asset == key and key is not None]
        if key is None:
            same = [dep for dep in declared if name in {dep.name, dep.parameter}]
        for dep in same[:1]:
            declared.remove(dep)
        known = same[0] if same else Dep(key)
        found.append(Dep(known.asset, parameter, known.mapping, known.on_blocked))
    return (*found, *declared)


def _function(asset: SqlAsset) -> FunctionType | Any:  # noqa: ANN401 - a function
    def run(ctx: Any, **tables: object) -> Any:  # noqa: ANN401 - of the runner
        config = ctx.config if isinstance(ctx.config, dict) else dict(ctx.config or {})
        return asset.run(ctx.partition, {**asset.config, **config}, tables)

    function: Callable[..., object] = run
    function.__annotations__ = dict.fromkeys(asset.tables, _TABLE)
    function.__name__ = function.__qualname__ = asset.key.rpartition("/")[2]
    return function
