#!/usr/bin/env bash
# Measures everything once and writes the tables and plots of docs/performance.md. The run is kept in bench/reported.txt.
# BENCHTIME is how many operations, PEERS names other programs to measure (docs/performance.md).
set -euo pipefail
cd "$(dirname "$0")/.."

run=$(mktemp)
trap 'rm -f "$run"' EXIT

# The service in the benchmark's process gets the profile that the built program has.
profile=off
if [[ -f default.pgo ]]; then profile=$PWD/default.pgo; fi

measure() { go test -pgo "$profile" -run '^$' -timeout 20m ./bench "$@" | tee -a "$run"; }

go run ./bench/report machine | tee "$run"
measure -bench '^Benchmark(Socket|OneConnection|Batch|InProcess|Peer)$' -benchtime "${BENCHTIME:-30000x}"
measure -bench '^Benchmark(Memory|Resident|Growth|Held|Lease)$' -benchtime 1x -long
cat "$run" >bench/reported.txt
go run ./bench/report write bench/reported.txt
