package cli

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// leaveWhenStopped shows the cursor before Ctrl-Z stops this process, until end is called. It does nothing when SIGTSTP is
// ignored, or when no shell could continue the process: when it is in the process group of its session's leader, as in a
// container. The kernel does not stop it there either.
func (s *screen) leaveWhenStopped() (end func()) {
	session, err := unix.Getsid(0)
	if err != nil || session == unix.Getpgrp() || signal.Ignored(unix.SIGTSTP) {
		return func() {}
	}
	stops, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(stops, unix.SIGTSTP)
	go func() {
		for {
			select {
			case <-stops:
				s.stop()
			case <-ended:
				return
			}
		}
	}()
	return func() {
		signal.Stop(stops)
		close(ended)
	}
}

// stop shows the cursor and stops this process. After it continues, the next drawing is below what was written meanwhile and
// hides the cursor again. It sends SIGSTOP, because package signal cannot restore the effect of SIGTSTP.
func (s *screen) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
	s.drawn = nil
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	if err := unix.Kill(os.Getpid(), unix.SIGSTOP); err == nil {
		<-continued
	}
}
