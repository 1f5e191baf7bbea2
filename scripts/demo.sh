#!/usr/bin/env bash
# The main job on the embedded default: a run of 1 -> 8 -> 1 tasks with a flaky one, in a fresh directory,
# then DuckDB reads Servo's own tables as they lie on disk. Ends by itself; KEEP=1 leaves the directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

servo=${SERVO:-${CARGO_TARGET_DIR:-target}/release/servo}
python=${PYTHON:-.venv/bin/python}

dir=$(mktemp -d "${TMPDIR:-/tmp}/servo-demo.XXXXXX")
if [ "${KEEP:-0}" = 1 ]; then
  trap 'printf "\nkept: %s\n" "$dir"' EXIT
else
  trap 'rm -rf -- "$dir"' EXIT
fi

printf '== servo demo\n'
"$servo" demo --dir "$dir"

printf '\n== the same tables, read by DuckDB\n'
"$python" scripts/query_tables.py "$dir"
