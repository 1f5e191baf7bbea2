#!/usr/bin/env bash
# Looks for bytes that break a parser: fuzz.sh [TARGET] [SECONDS]. Without a target all of them, 60 s each.
# What grew interesting stays in fuzz/found, what broke something in fuzz/artifacts; git ignores both. A find that is
# fixed belongs in fuzz/corpus under a readable name, where `make test` replays it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${1:-}
seconds=${2:-60}

say() { printf 'fuzz: %s\n' "$*" >&2; }
die() { printf 'fuzz: %s\n' "$@" >&2; exit 1; }

mapfile -t all < <(cd fuzz/fuzz_targets && printf '%s\n' *.rs | sed 's/\.rs$//')
case $seconds in '' | *[!0-9]*) die "SECONDS is a whole number, not $seconds" ;; esac
if [ -n "$target" ] && [ ! -f "fuzz/fuzz_targets/$target.rs" ]; then
  die "there is no target $target; there are:" "${all[@]}"
fi

# --- compiler ----------------------------------------------------------------------------------------------

command -v c++ >/dev/null || die "libFuzzer needs a C++ compiler, and there is no c++; install g++ or clang"
cargo fuzz --version >/dev/null 2>&1 || { say "installing cargo-fuzz"; cargo install --locked cargo-fuzz; }

# Coverage needs options of the compiler that only a nightly one takes, or one that is told to.
if cargo +nightly --version >/dev/null 2>&1; then
  cargo=(cargo +nightly)
else
  say "there is no nightly compiler; the stable one is used with RUSTC_BOOTSTRAP=1 (better: rustup toolchain add nightly)"
  export RUSTC_BOOTSTRAP=1
  cargo=(cargo)
fi
# The address sanitizer ends a target that asks for more memory than there should be. It is part of some toolchains.
sanitizer=none
if ls "$("${cargo[@]/cargo/rustc}" --print sysroot)"/lib/rustlib/*/lib/*rt.asan* >/dev/null 2>&1; then
  sanitizer=address
else
  say "this compiler has no address sanitizer; a length that is believed is only noticed once its memory is used"
fi

# --- run ---------------------------------------------------------------------------------------------------

# Its own build output: the instrumentation would spoil that of the workspace.
unset CARGO_TARGET_DIR
build=(--fuzz-dir fuzz --sanitizer "$sanitizer")
"${cargo[@]}" fuzz build "${build[@]}" ${target:+"$target"}

broken=()
for each in ${target:-"${all[@]}"}; do
  say "$each for $seconds s"
  mkdir -p "fuzz/found/$each"
  "${cargo[@]}" fuzz run "${build[@]}" "$each" "fuzz/found/$each" "fuzz/corpus/$each" -- \
    -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 || broken+=("$each")
done
if [ "${#broken[@]}" -gt 0 ]; then
  die "these targets broke; the inputs are in fuzz/artifacts: ${broken[*]}"
fi
say "nothing broke"
