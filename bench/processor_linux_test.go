package bench

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
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

// TestProcessorTimeIsThatOfTheProcess compares the clock that other processes can read with getrusage, around some work.
func TestProcessorTimeIsThatOfTheProcess(t *testing.T) {
	before := must(processorTime(os.Getpid()))(t)
	var usedBefore, usedAfter syscall.Rusage
	noError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usedBefore))
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
		runtime.Gosched()
	}
	noError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usedAfter))
	took := must(processorTime(os.Getpid()))(t) - before
	used := time.Duration(usedAfter.Utime.Nano() + usedAfter.Stime.Nano() - usedBefore.Utime.Nano() - usedBefore.Stime.Nano())
	if used <= 0 || took < used || took > used+20*time.Millisecond {
		t.Errorf("the clock says %v, getrusage %v", took, used)
	}
}

func TestProcessorTimeOfNoProcessIsAnError(t *testing.T) {
	if used, err := processorTime(1 << 28); err == nil { // above the kernel's highest id
		t.Errorf("%v", used)
	}
}
