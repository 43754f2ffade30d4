package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPeerIsMeasuredBesideTheService takes the bare handler for a peer.
func TestPeerIsMeasuredBesideTheService(t *testing.T) {
	binary := must(bareProgram())(t)
	request := filepath.Join(t.TempDir(), "ask.http")
	if err := os.WriteFile(request, []byte("POST /json HTTP/1.1\nContent-Type: application/json\n\n{\"domain\":\"bench\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readRequest(file)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
