package faults

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

func TestDescriptorsNameConnectionsByStateAndPorts(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lines := strings.Split(descriptorsOf(os.Getpid()), "\n\t")
	for _, want := range []string{
		fmt.Sprintf("listening, port %d to 0", portIn(listener.Addr())),
		fmt.Sprintf("established, port %d to %d", portIn(client.LocalAddr()), portIn(client.RemoteAddr())),
	} {
		found := 0
		for _, line := range lines {
			if line == want {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%q is in %d lines of:\n%s", want, found, strings.Join(lines, "\n"))
		}
	}
}

func portIn(address net.Addr) int { return address.(*net.TCPAddr).Port }
