package fleet

import (
	"syscall"
	"time"
)

// sleepInKernel blocks a thread for d and, by the kernel's slack, some 60 µs more.
func sleepInKernel(d time.Duration) {
	left := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
		// A signal cut it short; the kernel has written what is left.
	}
}
