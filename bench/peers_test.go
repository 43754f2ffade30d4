package bench

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/test/serviceproc"
)

// peer is a program that also decides over HTTP with the help of a Redis.
type peer struct {
	name    string
	command []string // program and arguments, with placeholders
	request []byte
}

// BenchmarkPeer measures the programs that PEERS names, in rounds that alternate with charges and with the bare handler. It
// has no results without PEERS.
func BenchmarkPeer(b *testing.B) {
	peers := must(parsePeers(os.Getenv("PEERS")))(b)
	if len(peers) == 0 {
		b.Skip("PEERS names no programs: see docs/performance.md")
	}
	s := startProgram(b)
	charges, _ := overSocket(b, s, charging, connections)
	charges.name = "charge"
	for _, p := range peers {
		b.Run(p.name, func(b *testing.B) {
			over, floor := p.start(b, connections)
			compare(b, over, floor, charges)
		})
	}
}

// parsePeers reads "name=program argument…", separated by semicolons or line ends. A last argument @FILE names the request.
func parsePeers(text string) (peers []peer, err error) {
	for _, entry := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		name, command, found := strings.Cut(strings.TrimSpace(entry), "=")
		p := peer{name: name, command: strings.Fields(command), request: []byte("GET / HTTP/1.1\r\nHost: peer\r\n\r\n")}
		if last := len(p.command) - 1; last > 0 && p.command[last][0] == '@' {
			if p.request, err = readRequest(p.command[last][1:]); err != nil {
				return nil, fmt.Errorf("request of the peer %s: %w", name, err)
			}
			p.command = p.command[:last]
		}
		if !found || name == "" || strings.ContainsAny(name, " /") || len(p.command) == 0 {
			return nil, fmt.Errorf("PEERS has %q: want name=program and its arguments", entry)
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// readRequest reads a request as HTTP/1.1 writes it: lines, an empty line, and the body. It adds Host and Content-Length.
func readRequest(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	head, body, _ := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n\n")
	body = strings.TrimSuffix(body, "\n")
	lines := append(strings.Split(strings.TrimSuffix(head, "\n"), "\n"), fmt.Sprintf("Content-Length: %d", len(body)), "Host: peer")
	if words := strings.Fields(lines[0]); len(words) != 3 || words[2] != "HTTP/1.1" {
		return nil, fmt.Errorf("%s begins with %q: want METHOD PATH HTTP/1.1", file, lines[0])
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n" + body), nil
}

// start runs the peer on a Redis of its own, with the settings of the service's, until the benchmark ends.
func (p peer) start(tb testing.TB, connections int) (over, floor contender) {
	tb.Helper()
	port := must(redisproc.FreePort())(tb)
	client, redis := startRedis(tb, redisproc.Config{Dir: tb.TempDir(), Port: port})
	listens := strconv.Itoa(must(redisproc.FreePort())(tb))
	addr := net.JoinHostPort("127.0.0.1", listens)
	place := strings.NewReplacer(
		"{listen}", addr, "{port}", listens, "{redis}", fmt.Sprintf("127.0.0.1:%d", port), "{socket}", client.Options().Addr)
	words := make([]string, len(p.command))
	for i, word := range p.command {
		words[i] = place.Replace(word)
	}
	process := must(serviceproc.StartProcess(exec.Command(words[0], words[1:]...)))(tb)
	tb.Cleanup(process.Kill)
	noError(tb, process.Await(func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}))
	calls := connect(tb, addr, connections, same(call{request: p.request, expect: []byte("HTTP/1.1 20")}))
	noError(tb, calls[0].take())
	return timed(p.name, calls.run).beside(process.PID(), redis.PID()), bare(tb, calls[0].size, connections)
}

// TestPeerIsMeasuredBesideTheService takes the bare handler for a peer.
func TestPeerIsMeasuredBesideTheService(t *testing.T) {
	binary := must(bareProgram())(t)
	request := filepath.Join(t.TempDir(), "ask.http")
	noError(t, os.WriteFile(request, []byte("POST /json HTTP/1.1\nContent-Type: application/json\n\n{\"domain\":\"bench\"}\n"), 0o600))
	peers := must(parsePeers("other=" + binary + " 300 {listen} @" + request))(t)
	over, floor := peers[0].start(t, 3)
	runBriefly(t, over, floor)
	if over.server == 0 || over.redis == 0 || over.server == over.redis {
		t.Errorf("processes %d and %d", over.server, over.redis)
	}
}

func TestPeersAreParsed(t *testing.T) {
	peers, err := parsePeers("one=/bin/one -a {listen}; two=/usr/bin/env PORT={port} /bin/two\n")
	if err != nil || len(peers) != 2 || peers[0].name != "one" || peers[1].name != "two" ||
		!slices.Equal(peers[1].command, []string{"/usr/bin/env", "PORT={port}", "/bin/two"}) ||
		!strings.HasPrefix(string(peers[0].request), "GET / HTTP/1.1\r\n") {
		t.Errorf("%+v, %v", peers, err)
	}
	if none, err := parsePeers(""); err != nil || none != nil {
		t.Errorf("without PEERS: %+v, %v", none, err)
	}
	for _, text := range []string{"/bin/one", "=/bin/one", "one=", "one/two=/bin/one", "one=/bin/one @/no/such/file"} {
		if _, err := parsePeers(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestRequestOfAPeerIsCompleted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ask.http")
	for text, want := range map[string]string{
		"GET /a HTTP/1.1\n":              "GET /a HTTP/1.1\r\nContent-Length: 0\r\nHost: peer\r\n\r\n",
		"POST /a HTTP/1.1\nX: y\n\n{}\n": "POST /a HTTP/1.1\r\nX: y\r\nContent-Length: 2\r\nHost: peer\r\n\r\n{}",
		"{}":                             "",
	} {
		noError(t, os.WriteFile(file, []byte(text), 0o600))
		got, err := readRequest(file)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
