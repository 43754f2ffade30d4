// Package deploy tests the deployment files beside it: manifests for Kubernetes, a systemd unit and configurations of proxies.
// The tests check their formats and their promises.
package deploy
