// Package release is about what scripts/release.sh builds: its tests build a release and take it apart, and release/sbom
// writes the bills of materials.
package release
