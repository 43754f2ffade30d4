// Package deploy holds Kubernetes manifests, a systemd unit, and gateway configurations. Its tests check their formats and
// behaviour; nothing imports it.
package deploy
