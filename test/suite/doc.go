// Package suite says which of the two test runs a test binary belongs to: make test, or make test-all, which is built with
// the tag long. A whole test of the long run stands in a file with the line
//
//	//go:build long
//
// and a test that has fewer rows or rounds in make test asks Long; one that has fewer with the race detector asks
// RaceDetector. Must, NoError and Eventually are for both. Nothing but tests imports it.
package suite
