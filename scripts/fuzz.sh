#!/bin/sh
# Runs one libFuzzer target for some seconds.
#
#   scripts/fuzz.sh build/fuzz/tests/fuzz/fuzz_<name> <seconds>
#
# What the fuzzer discovers is collected in build/fuzz/corpus/<name>, a crashing input is left in
# build/fuzz/crashes.
set -eu

target=$1
seconds=$2
name=$(basename "$target" | sed 's/^fuzz_//')
found=build/fuzz/corpus/$name

mkdir -p "$found" build/fuzz/crashes
log=build/fuzz/$name.log
echo "== $target ($seconds s)"
if ! "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/crashes/$name-" "$found" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: $target failed, see $log" >&2
    exit 1
fi
grep -E 'stat::number_of_executed_units|Done [0-9]+ runs' "$log" | tail -n 1
