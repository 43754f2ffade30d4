package service

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hooked is an organization of a running service, whose webhooks are looked at.
type hooked struct {
	*program
	t   *testing.T
	key string
}

func newHooked(t *testing.T, env ...string) hooked {
	t.Helper()
	p := start(t, env).ready(t)
	_, key := p.createOrganization(t)
	return hooked{p, t, key}
}

// create creates a webhook for new agents, which gets a test by itself, and returns its path.
func (h hooked) create(url string) string {
	h.t.Helper()
	var made struct{ ID string }
	if status := h.post(h.t, "/v1/webhooks", h.key, fmt.Sprintf(`{"url":%q,"types":["agent.created"]}`, url), &made); status != http.StatusCreated {
		h.t.Fatalf("no webhook: %d", status)
	}
	return "/v1/webhooks/" + made.ID
}

func hasCgo() bool {
	info, _ := debug.ReadBuildInfo()
	for _, setting := range info.Settings {
		if setting.Key == "CGO_ENABLED" {
			return setting.Value == "1"
		}
	}
	return false
}

// The running service connects to no private address, however a webhook's URL spells it. The resolver of libc takes 127.1,
// decimal, octal and hexadecimal numbers for addresses, which are then refused as what they are. What Go's own resolver makes of a name,
// and what needs a resolver that lies (a rebound name), is in package webhook.
func TestTheServiceConnectsToNoPrivateAddress(t *testing.T) {
	t.Parallel()
	const notPublic = "the host has no public address" // said also of names that do not exist: who asks must not learn which do
	hosts := []string{"127.0.0.1", "localhost", "127.1", "2130706433", "017700000001", "0177.0.0.1", "127.000.000.001"}
	if hasCgo() {
		hosts = append(hosts, "0x7f000001", "0x7f.0.0.1") // Go's resolver would ask a server for these names
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	var made atomic.Int64
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			made.Add(1)
			_ = conn.Close()
		}
	}()
	h := newHooked(t, "GODEBUG=netdns=cgo")
	hooks := map[string]string{}
	for _, host := range hosts {
		hooks[host] = h.create(fmt.Sprintf("https://%s:%d/", host, listener.Addr().(*net.TCPAddr).Port))
	}
	for host, hook := range hooks {
		var found []struct{ Error string }
		becomes(t, "the test of "+host+" fails", func() bool {
			_, text := h.get(t, hook+"/deliveries", "X-API-Key", h.key)
			return json.Unmarshal([]byte(text), &found) == nil && len(found) == 1 && found[0].Error != ""
		})
		if found[0].Error != notPublic {
			t.Errorf("%s: %s, want %s", host, found[0].Error, notPublic)
		}
	}
	if made.Load() > 0 {
		t.Errorf("it made %d connections", made.Load())
	}
	_ = must(net.Dial("tcp", listener.Addr().String()))(t).Close()
	becomes(t, "a connection is counted", func() bool { return made.Load() == 1 })
}

// What a receiver sends after its answer, unasked, does not reach the service's log, where it would pass for the service's words.
func TestAReceiverWritesNothingIntoTheLog(t *testing.T) {
	t.Parallel()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			time.Sleep(200 * time.Millisecond) // until the connection is idle
			_, _ = io.WriteString(conn, strings.Repeat("forged line\n", 100))
		}
		_, _ = io.Copy(io.Discard, conn) // until the service has noticed, and closes
		_ = conn.Close()
	}()
	h := newHooked(t, "REMIT_WEBHOOK_ALLOW_PRIVATE=true", "REMIT_LOG_LEVEL=debug")
	h.create("http://" + listener.Addr().String() + "/")
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the service keeps a connection on which it was sent what it had not asked for")
	}
	becomes(t, "the log tells of it", func() bool { return strings.Contains(h.Stderr(), "a library wrote a line") })
	if log := h.Stderr(); strings.Contains(log, "forged") {
		t.Errorf("the log has what the receiver sent:\n%s", log)
	}
}
