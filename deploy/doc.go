// Package deploy tests the deployment files beside it: manifests for Kubernetes, systemd units and configurations of proxies.
// The tests check their formats and their promises.
package deploy
