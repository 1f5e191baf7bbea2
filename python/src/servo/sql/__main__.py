"""Query a workspace: `python -m servo.sql [options] QUERY`, which `servo sql` starts.

The exit code is 0, or 1 if the query cannot be run, or 2 for a wrong use of this program. Results go to
stdout, everything else to stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from servo.sql import opening
from servo.sql.errors import QueryError
from servo.sql.output import write_csv, write_json, write_table
from servo.sql.results import run
from servo.sql.state import FileGoneError, State, StateError, Workspace

if TYPE_CHECKING:
    from servo.sql.serving import Limits
    from servo.sql.session import Session

_TRIES: Final = 3


def main(arguments: list[str]) -> int:
    """Run a query, and give the exit code."""
    options = _parser().parse_args(arguments)
    options.limits = _limits() if options.serve else None
    try:
        query = None if options.tables else _asked(options)
        if query is not None and not query.strip():
            sys.stderr.write('error: there is no query: servo sql "select …"\n')
            return 2
        workspace = Workspace.of(options.dir, options.tenant, options.workspace, options.storage)
        with opening.spill_directory() as directory:
            if options.limits is not None:
                _end_with_server()
            if not options.allow_files:
                opening.forbid_writes(but_in=directory)
            _answer(workspace, query, directory, options)
    except (QueryError, StateError) as error:
        text = str(error)
        if options.serve:
            sys.stderr.write(_problem(options.limits.explained(text)))
        else:
            sys.stderr.write(_problem(text) if options.json else f"error: {text}\n")
        return 1
    return 0


def _problem(text: str) -> str:
    """Write why a query cannot be run as programs read it, like every other command."""
    import json  # noqa: PLC0415 - rarely needed

    document = {
        "type": "urn:servo:problem:invalid_request",
        "title": "Invalid request",
        "status": 400,
        "detail": text,
        "code": "invalid_request",
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m servo.sql", description="Query a workspace with SQL.")
    parser.add_argument(
        "query", nargs="?", help="the query; - reads it from stdin; without one, a list of tables"
    )
    parser.add_argument("--dir", default=".servo", help="the state directory")
    parser.add_argument("--tenant", default="default")
    parser.add_argument("--workspace", default="main")
    parser.add_argument("--storage", help="where the data of assets is, if not in the state directory")
    parser.add_argument("--tables", action="store_true", help="list what a query can name")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="a list of objects")
    shape.add_argument("--csv", action="store_true")
    parser.add_argument("--rows", type=int, default=100, help="rows of a table that are shown; 0 shows all")
    parser.add_argument("--allow-files", action="store_true", help="let SQL read and write other files")
    parser.add_argument("--serve", action="store_true", help="for servers: the query and its limits on stdin")
    return parser


def _asked(options: argparse.Namespace) -> str | None:
    return _query(options.query) if options.limits is None else str(options.limits.query)


def _limits() -> Limits:
    from servo.sql.serving import Limits  # noqa: PLC0415 - only for servers

    return Limits.read()


def _end_with_server() -> None:
    from servo.sql.serving import end_with_stdin  # noqa: PLC0415 - only for servers

    end_with_stdin()


def _query(given: str | None) -> str | None:
    if given not in {None, "-"}:
        return given
    if given is None and sys.stdin.isatty():
        return None
    return sys.stdin.read()


def _answer(workspace: Workspace, query: str | None, directory: str, options: argparse.Namespace) -> None:
    """Answer. If it does not work because the tables were written anew meanwhile, begin anew with these."""
    state = State.newest(workspace)
    for tries_left in reversed(range(_TRIES)):
        writer = _Writer()
        session = opening.open_session(workspace, state, directory)
        try:
            _try(session, query, writer, options)
            writer.flush()
        except (FileGoneError, QueryError):
            newest = State.newest(workspace)
            if tries_left == 0 or writer.has_written or newest.revision == state.revision:
                raise
            state = newest
        else:
            return
        finally:
            session.connection.close()


def _try(session: Session, query: str | None, writer: _Writer, options: argparse.Namespace) -> None:
    try:
        if query is None:
            _list(session, writer, options)
            return
        if options.limits is not None:
            options.limits.hold(session.connection)
        sql = session.prepare(query)
        if not options.allow_files:
            session.seal()
        result = run(session.connection, sql, is_free=options.allow_files)
        if options.limits is not None:
            from servo.sql.serving import write_page  # noqa: PLC0415 - only for servers

            write_page(result, writer.write, options.limits, session.warnings)
            return
        for warning in session.warnings:
            sys.stderr.write(f"warning: {warning}\n")
        if options.json:
            write_json(result, writer.write)
        elif options.csv:
            write_csv(result, writer.write)
        else:
            write_table(result, writer.write, options.rows or None, _width())
    except opening.duckdb().Error as error:
        raise QueryError(session.explained(error, line_before=1)) from error


def _list(session: Session, writer: _Writer, options: argparse.Namespace) -> None:
    from servo.sql import listing  # noqa: PLC0415 - only if it is asked for

    if options.json:
        writer.write(listing.as_json(session))
    elif options.csv:
        write_csv(listing.as_result(session), writer.write)
    else:
        write_table(listing.as_result(session), writer.write, None, _width())
        writer.write('\n`servo sql "describe runs"` shows the columns of one with their types\n')


def _width() -> int | None:
    """Give how wide a table may be: as wide as the terminal, if it is one."""
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named) > 0:
        return int(named)
    return os.get_terminal_size(1).columns if os.isatty(1) else None


class _Writer:
    """Standard output; a reader that has seen enough (`| head`) ends the program quietly."""

    def __init__(self) -> None:
        self.has_written = False
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]

    def write(self, text: str) -> None:
        self.has_written = True
        self._do(lambda: sys.stdout.write(text))

    def flush(self) -> None:
        self._do(sys.stdout.flush)

    def _do(self, do: Any) -> None:  # noqa: ANN401 - a function
        try:
            do()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
