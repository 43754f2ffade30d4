package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// tcpStates are the names of the states in /proc/net/tcp, by their number (include/net/tcp_states.h of Linux).
var tcpStates = []string{
	"", "established", "syn sent", "syn received", "fin wait 1", "fin wait 2", "time wait", "closed", "close wait", "last ack",
	"listening", "closing",
}

// descriptorsOf returns what the file descriptors of a process are, a line each: of a TCP connection, its state and addresses.
func descriptorsOf(pid int) string {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return err.Error()
	}
	targets, err := process.FileDescriptorTargets()
	if err != nil {
		return err.Error()
	}
	connections := connectionsOf(pid)
	for i, target := range targets {
		if connection, is := connections[target]; is {
			targets[i] = connection
		}
	}
	slices.Sort(targets)
	return strings.Join(targets, "\n\t")
}

// connectionsOf returns the TCP connections that a process can see, by the names of their descriptors.
func connectionsOf(pid int) map[string]string {
	found := map[string]string{}
	fs, err := procfs.NewFS(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return found
	}
	over4, _ := fs.NetTCP()
	over6, _ := fs.NetTCP6()
	for _, c := range slices.Concat(over4, over6) {
		state := fmt.Sprintf("state %d", c.St)
		if c.St < uint64(len(tcpStates)) {
			state = tcpStates[c.St]
		}
		found[fmt.Sprintf("socket:[%d]", c.Inode)] = fmt.Sprintf("%s %v:%d to %v:%d", state, c.LocalAddr, c.LocalPort, c.RemAddr, c.RemPort)
	}
	return found
}
