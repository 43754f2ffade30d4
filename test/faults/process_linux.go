package faults

import (
	"fmt"
	"os"
)

// openFiles returns how many file descriptors the process has.
func openFiles(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries), err
}
