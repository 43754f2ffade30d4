#!/usr/bin/env bash
# Lints the Go code with .golangci.yml and the shell scripts with shellcheck. golangci-lint is built once for its version and
# this Go, into the user's cache directory.
set -euo pipefail
cd "$(dirname "$0")/.."
. ./scripts/modules.sh

version=v2.15.0
binaries=${XDG_CACHE_HOME:-$HOME/.cache}/remit/golangci-lint-$version-$(go env GOVERSION)
if [ ! -x "$binaries/golangci-lint" ]; then
  echo "building golangci-lint $version; this takes a few minutes, once"
  GOBIN=$binaries GOFLAGS='' go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version" 2>&1 |
    { grep -v '^go: downloading ' || true; }
fi
for module in "${modules[@]}"; do (cd "$module" && "$binaries/golangci-lint" run "$@"); done
shellcheck scripts/*.sh .ci/run deploy/systemd/debian/*
