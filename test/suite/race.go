//go:build race

package suite

// RaceDetector is true in a test binary that is built with it.
const RaceDetector = true
