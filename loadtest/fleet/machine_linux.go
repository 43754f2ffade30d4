package fleet

import "syscall"

// memory is the machine's memory in bytes; 0 when it is not known.
func memory() uint64 {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}
