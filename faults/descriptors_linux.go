package faults

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// tcpStates are the names of the states in /proc/net/tcp, by their number (include/net/tcp_states.h of Linux).
var tcpStates = []string{
	"", "established", "syn sent", "syn received", "fin wait 1", "fin wait 2", "time wait", "closed", "close wait", "last ack",
	"listening", "closing",
}

// descriptorsOf returns what the file descriptors of a process are, a line each: of a TCP connection, its state and ports.
func descriptorsOf(pid int) string {
	directory := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err.Error()
	}
	connections := connectionsOf(pid)
	var lines []string
	for _, entry := range entries {
		target, err := os.Readlink(directory + "/" + entry.Name())
		if err != nil {
			continue // closed meanwhile
		}
		if connection, is := connections[target]; is {
			target = connection
		}
		lines = append(lines, target)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n\t")
}

// connectionsOf returns the TCP connections that a process can see, by the names of their descriptors.
func connectionsOf(pid int) map[string]string {
	found := map[string]string{}
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err != nil {
			continue // without IPv6 there is no such file
		}
		for line := range strings.Lines(string(table)) {
			if fields := strings.Fields(line); len(fields) > 9 { // number, local, remote, state, …, inode
				found["socket:["+fields[9]+"]"] = fmt.Sprintf("%s, port %d to %d", tcpState(fields[3]), portOf(fields[1]), portOf(fields[2]))
			}
		}
	}
	return found
}

func tcpState(number string) string {
	if n, err := strconv.ParseUint(number, 16, 8); err == nil && n < uint64(len(tcpStates)) {
		return tcpStates[n]
	}
	return "state " + number
}

// portOf returns the port of an address in /proc/net/tcp, 0 if it has none.
func portOf(address string) uint64 {
	_, port, _ := strings.Cut(address, ":")
	n, _ := strconv.ParseUint(port, 16, 16)
	return n
}
