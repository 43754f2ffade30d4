package cli

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// leaveWhenStopped lets the key Ctrl-Z stop this process with the cursor shown, until end is called. A process that was told
// to ignore the key goes on ignoring it, and so does one that no shell would let go on: in the group of its session's leader,
// as in a container, where the kernel too leaves it alone.
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

// stop gives the cursor back and stops this process. When it goes on the next drawing is below what has been written
// meanwhile, and hides the cursor again; until then nothing is drawn. It is stopped by SIGSTOP, for package signal does not
// give SIGTSTP back its effect.
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
