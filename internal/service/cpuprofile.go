//go:build cpuprofile

package service

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

// Built with the tag cpuprofile, the program records a CPU profile from its start until SIGUSR1, and then writes it to the file
// that CPUPROFILE names. Releases are built without the tag. scripts/pgo.sh uses it.
func init() {
	name := os.Getenv("CPUPROFILE")
	if name == "" {
		return
	}
	file, err := os.CreateTemp("", "remit-cpuprofile-")
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no CPU profile:", err)
		os.Exit(1)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGUSR1)
	go func() {
		<-end
		pprof.StopCPUProfile()
		_ = file.Close()
		_ = os.Rename(file.Name(), name) // only a complete profile has the name
	}()
}
