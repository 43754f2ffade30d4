//go:build !linux

package fleet

import "time"

// sleepInKernel sleeps for d. Timers outside Linux are not rounded to milliseconds.
func sleepInKernel(d time.Duration) { time.Sleep(d) }
