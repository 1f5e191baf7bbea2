#!/usr/bin/env bash
# The flights example, from CSV files to a report with a picture, for January 2013: makes all of it in a fresh
# directory, asks the result and Servo's own tables a question each, and ends. `make demo` builds what it needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${CARGO_TARGET_DIR:-target}
servo=${SERVO:-$target/debug/servo}
python=${PYTHON:-$PWD/.venv/bin/python}

die() { printf 'demo: %s\n' "$@" >&2; exit 1; }
[ -x "$servo" ] || die "there is no $servo; make demo builds it"
"$python" -c 'import duckdb, matplotlib, polars, pyarrow, servo' ||
  die "$python lacks what the example imports; make demo installs it"

rm -rf -- "$target/demo"
mkdir -p -- "$target/demo"
dir=$(cd -- "$target/demo" && pwd)

# Nothing of the caller's own Servo is used or touched.
unset SERVO_URL SERVO_TENANT SERVO_WORKSPACE
export SERVO_PROJECT=$PWD/examples/flights SERVO_DIR=$dir/state SERVO_PYTHON=$python

# Shows a command as one would type it, and runs it.
run() {
  local word
  printf '\n$ servo'
  for word; do
    case $word in
      *[!A-Za-z0-9_.:/=-]*) printf " '%s'" "$word" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n'
  "$servo" "$@"
}

run materialize '*' --partitions 2013-01-01..2013-01-31
run sql 'select name, flights, cancelled, late_percent, mean_delay from analytics.top_carriers order by flights desc limit 5'
run sql 'select run_id, state, tasks_total, tasks_succeeded, finished_at - started_at as took from runs'

# Bytes are stored like all data, under a name that no program opens: leave copies that do.
assets=$SERVO_DIR/tenant=default/workspace=main/assets
"$python" - "$assets/report" "$dir" <<'PY'
import json, shutil, sys
from pathlib import Path

reports, to = map(Path, sys.argv[1:])
for asset, name in (("monthly", "january.md"), ("plot", "january.png")):
    home = reports / asset / "partitions" / "month=d:2013-01-01"
    latest = json.loads((home / "latest.json").read_text("utf-8"))
    shutil.copyfile(home / latest["path"] / "data.bin", to / name)
PY

printf '\nreport   %s\n' "$dir/january.md"
printf 'picture  %s\n' "$dir/january.png"
printf 'data     %s\n' "$assets"
printf 'code     %s\n' "$SERVO_PROJECT"
printf 'pages    http://127.0.0.1:8741 while this runs:\n         SERVO_DIR=%s SERVO_PYTHON=%s %s dev --open --project %s\n' "$SERVO_DIR" "$python" "$servo" "$SERVO_PROJECT"
