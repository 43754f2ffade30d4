package fleet

import (
	"fmt"
	"io"
	"os"
	"time"
)

// startProgress writes a line about the actions every interval, in place on a terminal, until the returned function is
// called.
func startProgress(s *stats, w io.Writer, interval time.Duration) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	before, after := "", "\n"
	if isTerminal(w) {
		before, after = "\r", "\x1b[K" // return to the start of the line; clear the rest of a longer line
	}
	s.takeMoment()
	go func() {
		defer close(done)
		start := time.Now()
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticks.C:
				line := progressLine(time.Since(start), interval, s.takeMoment())
				fmt.Fprint(w, before, line, after)
			}
		}
	}()
	return func() {
		close(quit)
		<-done
		if before != "" {
			fmt.Fprintln(w)
		}
	}
}

// progressLine is one line about the last interval.
func progressLine(elapsed, interval time.Duration, m moment) string {
	rate := float64(m.count) / interval.Seconds()
	return fmt.Sprintf("%4.0fs  %8.0f/s  p50 %-8s p99 %-8s refused %d  errors %d",
		elapsed.Seconds(), rate, brief(m.p50), brief(m.p99), m.refused, m.errors)
}

// isTerminal reports whether w is a character device, the closest test in the standard library.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
