#!/usr/bin/env bash
# Builds the service and runs it. It is a job of its own: Ctrl-C reaches it alone, and make sees that it ended well.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "Building bin/remit: about a minute the first time, then a moment." >&2
go build -pgo=off -o bin/remit . # the profile of a release takes minutes to compile with
set -m
./bin/remit "$@"
