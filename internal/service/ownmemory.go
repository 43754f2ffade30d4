package service

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// The redis-server that the service starts gets half of the available memory. The rest is for this process, and for the
// pages that Redis copies while it rewrites its append-only file.
const (
	ownMemoryUnknown = 1 << 30  // bytes, on a machine that does not report its memory
	ownMemoryLeast   = 64 << 20 // bytes
)

// ownMaxMemory returns the maxmemory of the redis-server that the service starts, in bytes.
func ownMaxMemory() uint64 {
	return maxMemoryOf(availableMemory("/proc/meminfo", "/sys/fs/cgroup/memory.max"))
}

func maxMemoryOf(available uint64) uint64 {
	if available == 0 {
		return ownMemoryUnknown
	}
	return max(available/2, ownMemoryLeast)
}

// availableMemory returns the smaller of the machine's memory and the control group's limit, in bytes; 0 when neither is
// known.
func availableMemory(meminfo, limit string) uint64 {
	available := uint64(math.MaxUint64)
	for line := range strings.Lines(read(meminfo)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" {
			if kib, err := strconv.ParseUint(fields[1], 10, 54); err == nil {
				available = kib << 10
			}
		}
	}
	if bytes, err := strconv.ParseUint(strings.TrimSpace(read(limit)), 10, 64); err == nil { // not a number when unlimited: "max"
		available = min(available, bytes)
	}
	if available == math.MaxUint64 {
		return 0
	}
	return available
}

// read returns "" for a file that cannot be read.
func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(text)
}
