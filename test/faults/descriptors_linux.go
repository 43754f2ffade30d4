package faults

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// tcpStates are the names of the states in /proc/net/tcp, by their number (include/net/tcp_states.h of Linux).
var tcpStates = []string{
	"", "established", "syn sent", "syn received", "fin wait 1", "fin wait 2", "time wait", "closed", "close wait", "last ack",
	listening, "closing",
}

// openFiles returns how many file descriptors the process has.
func openFiles(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries), err
}

// linksOf returns what the file descriptors of a process are, as /proc names them.
func linksOf(pid int) ([]string, error) {
	directory := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var links []string
	for _, entry := range entries {
		if target, err := os.Readlink(directory + "/" + entry.Name()); err == nil { // or it was closed meanwhile
			links = append(links, target)
		}
	}
	return links, nil
}

// descriptorsOf returns what the file descriptors of a process are, a line each: of a TCP connection, its state and ports.
func descriptorsOf(pid int) string {
	links, err := linksOf(pid)
	if err != nil {
		return err.Error()
	}
	connections, err := tcpConnections(pid)
	if err != nil {
		return err.Error()
	}
	named := map[string]string{}
	for _, c := range connections {
		named[c.link()] = fmt.Sprintf("%s, port %d to %d", c.state, c.local, c.remote)
	}
	for i, link := range links {
		links[i] = cmp.Or(named[link], link)
	}
	slices.Sort(links)
	return strings.Join(links, "\n\t")
}

// closedByServer returns how many connections of a process have been closed by a server at one of these ports, and not by the process.
func closedByServer(pid int, ports []int64) (n int) {
	links, _ := linksOf(pid)
	connections, _ := tcpConnections(pid) // of every process; without them the check says more
	for _, c := range connections {
		if c.state == "close wait" && slices.Contains(ports, c.remote) && slices.Contains(links, c.link()) {
			n++
		}
	}
	return n
}

// listening is the state of a socket that accepts connections.
const listening = "listening"

// tcpConnection is a line of /proc/net/tcp.
type tcpConnection struct {
	inode         string
	state         string
	local, remote int64 // ports
	unread        int64 // bytes
}

// link is what the file descriptor of the connection is.
func (c tcpConnection) link() string { return "socket:[" + c.inode + "]" }

// tcpConnections returns the TCP connections that a process can see, and the sockets that listen.
func tcpConnections(pid int) (connections []tcpConnection, err error) {
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if errors.Is(err, os.ErrNotExist) && name == "tcp6" {
			continue // without IPv6
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(table)) {
			fields := strings.Fields(line) // number, local and remote address, state, unsent:unread, …, inode
			if len(fields) < 10 || fields[0] == "sl" {
				continue
			}
			state := "state " + fields[3]
			if n := hexBehind("", fields[3]); 0 <= n && n < int64(len(tcpStates)) {
				state = tcpStates[n]
			}
			connections = append(connections, tcpConnection{fields[9], state, hexBehind(":", fields[1]), hexBehind(":", fields[2]), hexBehind(":", fields[4])})
		}
	}
	return connections, nil
}

// hexBehind returns the hexadecimal number behind a separator, -1 if there is none.
func hexBehind(separator, text string) int64 {
	_, number, _ := strings.Cut(text, separator)
	n, err := strconv.ParseInt(number, 16, 64)
	if err != nil {
		return -1
	}
	return n
}
