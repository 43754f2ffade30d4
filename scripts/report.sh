#!/usr/bin/env bash
# Measures everything once and writes the tables and plots of docs/performance.md. The run is kept in bench/reported.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

run=$(mktemp)
trap 'rm -f "$run"' EXIT

measure() { go test -run '^$' -timeout 20m ./bench "$@" | sed -u '/^cpu:/d' | tee -a "$run"; }

go run ./bench/report machine | tee "$run"
measure -bench '^Benchmark(Socket|Batch|InProcess)$' -benchmem -benchtime "${BENCHTIME:-40000x}"
measure -bench '^Benchmark(Memory|Resident|Growth|Held)$' -benchtime 1x -long
cat "$run" >bench/reported.txt
go run ./bench/report write bench/reported.txt
