#!/usr/bin/env bash
# Makes the Debian package of a binary: deb.sh BINARY VERSION ARCHITECTURE DIRECTORY. Every file has the time in
# SOURCE_DATE_EPOCH and belongs to root. The package enables and starts nothing: /etc/remit/remit.env comes first.
set -euo pipefail
umask 022 # dpkg-deb refuses directories that others cannot read
cd "$(dirname "$0")/.."

binary=$1 architecture=$3 directory=$4
version=${2/-/\~} # Debian takes 1.2.3~rc.1 for older than 1.2.3
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

install -D -m 755 "$binary" "$root/usr/bin/remit"
install -D -m 644 deploy/systemd/remit.service "$root/lib/systemd/system/remit.service"
install -D -m 644 deploy/systemd/remit-gateway.service "$root/lib/systemd/system/remit-gateway.service"
install -D -m 640 deploy/systemd/remit.env "$root/etc/remit/remit.env"
install -D -m 644 deploy/systemd/keys.conf "$root/usr/share/doc/remit/examples/keys.conf"
install -D -m 644 deploy/systemd/tls.conf "$root/usr/share/doc/remit/examples/tls.conf"
install -D -m 644 deploy/systemd/gateway.conf "$root/usr/share/doc/remit/examples/gateway.conf"
install -D -m 644 deploy/redis/users.acl "$root/usr/share/doc/remit/examples/users.acl"
{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: remit\n\n'
  printf 'Files: *\nCopyright: the authors of Remit\nLicense: Apache-2.0\n'
  printf ' The full text is in /usr/share/common-licenses/Apache-2.0.\n'
} >"$root/usr/share/doc/remit/copyright"
chmod 644 "$root/usr/share/doc/remit/copyright"
find "$root" -type d -exec chmod 755 {} +

mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: remit
Version: $version
Architecture: $architecture
Maintainer: The authors of Remit <maintainers@remit.invalid>
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
Section: net
Priority: optional
Recommends: redis-server (>= 5:7.0) | valkey-server, ca-certificates
Description: tokens, scopes and budgets for AI agents
 Remit gives every AI agent a remit: who it is (a token), what it may do
 (scopes), and how much it may do (a session with a budget of actions,
 dollars and time). It is one stateless binary in front of Redis.
CONTROL
echo /etc/remit/remit.env >"$root/DEBIAN/conffiles"
install -m 755 deploy/systemd/debian/postinst deploy/systemd/debian/prerm deploy/systemd/debian/postrm "$root/DEBIAN/"
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
chmod 644 "$root/DEBIAN/control" "$root/DEBIAN/conffiles" "$root/DEBIAN/md5sums"

# gzip: what xz makes depends on how many processors there are.
dpkg-deb --root-owner-group -Zgzip --build "$root" "$directory/remit_${version}_$architecture.deb" >/dev/null
