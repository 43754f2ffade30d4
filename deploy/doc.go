// Package deploy is what runs Remit elsewhere: manifests for Kubernetes, a unit for systemd, configurations of gateways. Its
// tests hold them to their formats and to what they promise; nothing imports it.
package deploy
