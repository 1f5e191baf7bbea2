"""Opens a workspace with DuckDB: for `servo sql`, and for whoever wants to query it in Python."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from servo.sql import lockdown
from servo.sql.errors import QueryError
from servo.sql.interrupts import end_when_interrupted
from servo.sql.quoting import text
from servo.sql.session import Session
from servo.sql.state import State, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from duckdb import DuckDBPyConnection

    from servo.sql.state import State as StateOf


def duckdb() -> Any:  # noqa: ANN401 - a module
    """Import DuckDB, or say what to install.

    Its package takes a tenth of a second to import, and what is needed is all in the module below.

    Raises:
        QueryError: It is not installed.
    """
    from importlib import import_module  # noqa: PLC0415 - as below

    for name in ("_duckdb", "duckdb"):
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    raise QueryError(f"DuckDB is not installed, which runs SQL; install it with\n\n  {_install_command()}\n")


def _install_command() -> str:
    from importlib.util import find_spec  # noqa: PLC0415 - only for this message

    package = "'servo-orchestrator[sql]'"
    if find_spec("pip") is None:
        return f"uv pip install --python {sys.executable} {package}"
    return f"{sys.executable} -m pip install {package}"


def open_session(workspace: Workspace, state: StateOf, spill: str | None = None) -> Session:
    """Open a database in memory that can make views of a workspace.

    Args:
        workspace: Where it lies.
        state: Its tables.
        spill: A directory for what does not fit into memory.
    """
    connection = duckdb().connect(":memory:")
    if spill is not None:
        connection.execute(f"set temp_directory = {text(f'{spill}/duckdb')}")
    return Session(connection, workspace, state)


def forbid_writes(but_in: str) -> None:
    """Let this process write nowhere but in one directory, where the system can do that."""
    duckdb()  # its threads are started later, and are bound too
    lockdown.forbid_writes(but_in)


@contextmanager
def spill_directory() -> Iterator[str]:
    """Make a directory for what does not fit into memory, and remove it when the program ends."""
    import shutil  # noqa: PLC0415 - as below
    import tempfile  # noqa: PLC0415 - only for programs

    with tempfile.TemporaryDirectory(prefix="servo-sql-", ignore_cleanup_errors=True) as directory:
        end_when_interrupted(lambda: shutil.rmtree(directory, ignore_errors=True))
        tempfile.tempdir = directory
        yield directory


def connect(
    state_dir: str | os.PathLike[str] | None = None,
    *,
    tenant: str = "default",
    workspace: str = "main",
    storage: str | None = None,
    assets: Iterable[str] | None = None,
) -> DuckDBPyConnection:
    """Open a workspace with DuckDB, beside a running server or without one.

    Servo's tables are views by their names, assets by `namespace.name`. They show what there is now, and not
    what is made later. The connection is one of DuckDB, to a database in memory: it can read and write files
    as any other.

    Args:
        state_dir: The state directory; by default `SERVO_DIR`, or `.servo` beside the nearest `servo.toml`.
        tenant: Whose workspace it is.
        workspace: Which workspace it is.
        storage: Where the data of assets is, if not in the state directory; by default as in `servo.toml`.
        assets: The assets that become views, such as `raw.flights`; by default all that were made. Opening
            looks at every partition of these, so name those that you need where there are very many.

    Raises:
        servo.sql.state.StateError: There is no such workspace, or it is damaged.
        servo.sql.errors.QueryError: An asset that was named does not exist or cannot be read.
        servo.storage.errors.MissingLibrary: DuckDB is not installed.

    >>> import tempfile
    >>> lake = tempfile.mkdtemp()
    >>> os.makedirs(f"{lake}/tenant=default/workspace=main")
    >>> connect(lake).execute("select count(*) from runs").fetchall()
    [(0,)]
    """
    from servo.storage.libraries import needed  # noqa: PLC0415 - not for programs

    library = needed("duckdb", "runs SQL")
    found, file = _directory(state_dir)
    place = Workspace.of(found, tenant, workspace, storage or _storage(file))
    session = Session(library.connect(":memory:"), place, State.newest(place))
    for name in session.table_names():
        session.add_table(name)
    if assets is None:
        _add_all(session)
    else:
        for asset in assets:
            session.add_asset(_key(session, asset))
    connection: DuckDBPyConnection = session.connection
    return connection


def _add_all(session: Session) -> None:
    """Make views of all assets that were made; one that cannot be read is left out, with a warning."""
    import warnings  # noqa: PLC0415 - rarely needed

    made = session.connection.execute(
        "select distinct asset_key from partition_status where last_materialization_id is not null order by 1"
    ).fetchall()
    for (key,) in made:
        try:
            session.add_asset(key)
        except QueryError as error:
            warnings.warn(str(error), stacklevel=3)
    for warning in session.warnings:
        warnings.warn(warning, stacklevel=3)


def _key(session: Session, asset: str) -> str:
    from servo.sql.names import near  # noqa: PLC0415 - rarely needed

    key = asset.replace(".", "/", 1)
    keys = session.asset_keys()
    if key not in keys:
        meant = near(asset, [each.replace("/", ".", 1) for each in keys])
        raise QueryError(f"there is no asset {asset}{f': did you mean {meant[0]}?' if meant else ''}")
    return key


def _directory(given: str | os.PathLike[str] | None) -> tuple[str, str | None]:
    """Find the state directory, and the file of the project that it belongs to."""
    named = os.environ.get("SERVO_DIR") if given is None else os.fspath(given)
    directory = os.path.abspath(os.path.dirname(named) if named else ".")
    while not os.path.isfile(os.path.join(directory, "servo.toml")):
        above = os.path.dirname(directory)
        if above == directory:
            return named or ".servo", None
        directory = above
    return named or os.path.join(directory, ".servo"), os.path.join(directory, "servo.toml")


def _storage(file: str | None) -> str | None:
    """Read from the file of a project where the data of assets is."""
    if file is None:
        return None
    import tomllib  # noqa: PLC0415 - rarely needed

    with open(file, "rb") as opened:
        storage = tomllib.load(opened).get("project", {}).get("storage")
    if not isinstance(storage, str):
        return None
    return storage if "://" in storage else os.path.join(os.path.dirname(file), storage)
