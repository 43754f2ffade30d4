package bench

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestProcessorTimeIsThatOfTheProcess compares the clock that other processes can read with getrusage, around some work.
func TestProcessorTimeIsThatOfTheProcess(t *testing.T) {
	before := readProcessorTime(t, os.Getpid())
	var usedBefore, usedAfter syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usedBefore); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
		runtime.Gosched()
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usedAfter); err != nil {
		t.Fatal(err)
	}
	took := readProcessorTime(t, os.Getpid()) - before
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

func readProcessorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	return must(processorTime(pid))(t)
}
