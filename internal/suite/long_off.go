//go:build !long

package suite

// Long tells the long run, make test-all, from make test.
const Long = false
