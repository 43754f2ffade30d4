#!/usr/bin/env bash
# Installs what the tests need beside Go: redis-server, and a C compiler for the race detector. It says so first, and
# does nothing on a machine that has both.
set -euo pipefail

missing=()
command -v redis-server >/dev/null || command -v valkey-server >/dev/null || missing+=(redis)
command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null || missing+=(compiler)
[ ${#missing[@]} -eq 0 ] && exit 0
echo "this machine lacks: ${missing[*]}; installing"

as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }

if command -v apt-get >/dev/null; then
  packages=()
  for tool in "${missing[@]}"; do
    case $tool in
      redis) packages+=(redis-server) ;;
      compiler) packages+=(gcc libc6-dev) ;;
    esac
  done
  as_root apt-get update -qq
  # The tests start servers of their own: the package must not start one beside them.
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${packages[@]}"
elif command -v brew >/dev/null; then
  for tool in "${missing[@]}"; do
    case $tool in
      redis) brew install redis ;;
      compiler) xcode-select --install ;;
    esac
  done
else
  echo "install ${missing[*]} with this machine's package manager, then run it again" >&2
  exit 1
fi
