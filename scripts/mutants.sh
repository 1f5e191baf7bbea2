#!/usr/bin/env bash
# Plants small mistakes in the code, one at a time, and counts those that no test notices: mutants.sh COUNT SEED [FILE…]
# Without a file, COUNT of all mutants of runtime, worker, api, store and projections, chosen by SEED. Files are globs as
# `cargo mutants --file` takes them. Each mutant is built and tested by itself: about a minute each on two cores.
# Results: a rate per crate here, everything in target/mutants.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=${1:-300}
seed=${2:-1}
shift $(($# < 2 ? $# : 2))

say() { printf 'mutants: %s\n' "$*" >&2; }
die() { printf 'mutants: %s\n' "$@" >&2; exit 1; }

case $count in '' | 0 | *[!0-9]*) die "COUNT is a whole number above 0, not $count" ;; esac
case $seed in '' | *[!0-9]*) die "SEED is a whole number, not $seed" ;; esac
python=${PYTHON:-$PWD/.venv/bin/python}
[ -x "$python" ] || die "$python is not there; run: make setup"
cargo mutants --version >/dev/null 2>&1 || { say "installing cargo-mutants"; cargo install --locked cargo-mutants; }

crates=(servo-runtime servo-worker servo-api servo-store servo-projections)
where=()
if [ "$#" -gt 0 ]; then
  where+=(--workspace)
  for file in "$@"; do where+=(--file "$file"); done
else
  for crate in "${crates[@]}"; do where+=(--package "$crate"); done
fi

# The list is the same for the same code. Every n-th is taken, beginning at a place that the seed decides.
total=$(cargo mutants --list "${where[@]}" | wc -l)
[ "$total" -gt 0 ] || die "there is nothing to mutate in ${*:-${crates[*]}}"
every=$(((total + count - 1) / count))
say "$total mutants, one in $every is tried"

# Pages are no part of it; doc tests neither, they only show how things are called.
export SERVO_WITHOUT_UI=1 CARGO_PROFILE_DEV_DEBUG=0
out=$PWD/${CARGO_TARGET_DIR:-target}
mkdir -p "$out"
# Exit codes 2 and 3 say that mutants were missed or timed out; that is what is counted below.
# A copy of the tree is changed, never this one; IN_PLACE=1 spares the copy its build, and puts back what it changed.
status=0
cargo mutants "${where[@]}" ${IN_PLACE:+--in-place} --test-tool nextest --sharding round-robin \
  --shard "$((seed % every))/$every" --no-shuffle --colors never --output "$out" || status=$?
case $status in 0 | 2 | 3) ;; *) die "cargo mutants has failed with exit code $status" ;; esac
"$python" scripts/mutants.py "$out/mutants.out/outcomes.json"
