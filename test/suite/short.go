//go:build !long

package suite

// Long is true in make test-all and false in make test.
const Long = false
