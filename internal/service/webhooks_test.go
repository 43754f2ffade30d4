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

// failure waits until the test has failed, and returns why.
func (h hooked) failure(path string) string {
	h.t.Helper()
	var found []struct{ Error string }
	becomes(h.t, "the test fails", func() bool {
		_, text := h.get(h.t, path+"/deliveries", "X-API-Key", h.key)
		return json.Unmarshal([]byte(text), &found) == nil && len(found) == 1 && found[0].Error != ""
	})
	return found[0].Error
}

// newCountingListener returns the port of a listener, and how many connections it was made.
func newCountingListener(t *testing.T) (port string, made *atomic.Int64) {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	made = new(atomic.Int64)
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			made.Add(1)
			_ = conn.Close()
		}
	}()
	return fmt.Sprint(listener.Addr().(*net.TCPAddr).Port), made
}

// hasCgo says whether the program can resolve by libc.
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
// decimal, octal and hexadecimal numbers for addresses, which are then refused as what they are. Go's own resolver finds no
// such name, and asks no server. What needs a resolver that lies (a rebound name) is in package webhook, which can be given one.
func TestTheServiceConnectsToNoPrivateAddress(t *testing.T) {
	t.Parallel()
	const notPublic = "the host has no public address" // said also of names that do not exist: who asks must not learn which do
	hosts := []string{
		"127.0.0.1", "localhost", "0.0.0.0", "169.254.169.254", "10.0.0.1", "192.168.0.1", "[::1]", "[::]", "[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[fd00:ec2::254]", "127.1", "2130706433", "017700000001", "0177.0.0.1", "127.000.000.001",
	}
	resolvers := map[string][]string{"go": hosts}
	if hasCgo() {
		resolvers["cgo"] = append(hosts[:len(hosts):len(hosts)], "0x7f000001", "0x7f.0.0.1") // Go's resolver would ask a server for these names
	}
	for resolver, hosts := range resolvers {
		t.Run(resolver, func(t *testing.T) {
			t.Parallel()
			port, made := newCountingListener(t)
			h := newHooked(t, "GODEBUG=netdns="+resolver)
			hooks := map[string]string{}
			for _, host := range hosts {
				hooks[host] = h.create("https://" + host + ":" + port + "/")
			}
			for host, hook := range hooks {
				if cause := h.failure(hook); cause != notPublic {
					t.Errorf("%s: %s, want %s", host, cause, notPublic)
				}
			}
			if made.Load() > 0 {
				t.Errorf("it made %d connections", made.Load())
			}
		})
	}
}

// Where private addresses are allowed, the same listener is connected to: the test above would see it.
func TestTheServiceConnectsToAPrivateAddressWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	port, made := newCountingListener(t)
	h := newHooked(t, "REMIT_WEBHOOK_ALLOW_PRIVATE=true")
	if cause := h.failure(h.create("https://127.0.0.1:" + port + "/")); cause != "the connection failed" || made.Load() == 0 {
		t.Errorf("%q after %d connections", cause, made.Load())
	}
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
