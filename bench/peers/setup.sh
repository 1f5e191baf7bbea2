#!/bin/sh
# Make one venv per peer under $BENCH_VENVS, byte-compiled, from the pinned lists.
# Debian's python3.11 (PGO build) on purpose: a pyenv build without PGO runs the peers ~15 % slower.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venvs=${BENCH_VENVS:-${TMPDIR:-/tmp}/venvs}
python=${BENCH_PYTHON:-/usr/bin/python3.11}
unset PYTHONDONTWRITEBYTECODE
python3 -m venv "$venvs/uv" && "$venvs/uv/bin/pip" install -q uv
for peer in ${*:-dagster prefect airflow luigi rivers}; do
    "$venvs/uv/bin/uv" venv -q --python "$python" "$venvs/$peer"
    "$venvs/uv/bin/uv" pip install -q --compile-bytecode --python "$venvs/$peer/bin/python" \
        -r "$here/requirements-$peer.txt"
done
