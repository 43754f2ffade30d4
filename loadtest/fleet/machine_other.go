//go:build !linux

package fleet

// memory is the machine's memory in bytes; 0, as it is not known here.
func memory() uint64 { return 0 }
