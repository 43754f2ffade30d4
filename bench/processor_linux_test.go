package bench

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the user and system time of a process so far, of all its threads, also of those that have ended. It
// reads the process's clock, in nanoseconds: /proc/PID/stat counts in ticks of 10 ms, as long as a thousand requests.
func processorTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED of the kernel's posix-timers.h: the clock's id is that of clock_getcpuclockid(3)
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &now); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(now.Nano()), nil
}
