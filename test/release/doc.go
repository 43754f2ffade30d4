// Package release tests what scripts/release.sh builds: it builds a release and inspects it. scripts/sbom writes the software
// bills of materials.
package release
