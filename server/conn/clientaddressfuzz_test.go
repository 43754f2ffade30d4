package conn

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
)

// FuzzForwarded checks that no client can choose what it counts for: what stands left of an address that is no proxy's
// changes nothing, nor does anything that who is no proxy says.
func FuzzForwarded(f *testing.F) {
	for _, seed := range [][2]string{
		{"203.0.113.9", "1.1.1.1"}, {"203.0.113.9, 10.0.0.2", "1.1.1.1"}, {"10.0.0.2", "203.0.113.9"}, {"", ""}, {",", ","}, {"unknown", "1.1.1.1"},
		{"203.0.113.9:80", ""}, {"[2001:db8::1]:80", "x"}, {"2001:db8::1%eth0", ""}, {"::ffff:10.0.0.2", "::ffff:1.1.1.1"}, {"010.0.0.1", ""},
		{"10.0.0.1,,10.0.0.2", "1.1.1.1"}, {"\x00", "\xff"}, {"fd00::1", "fd00::2"}, {"[::ffff:203.0.113.9%a]:1", ""},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	known, stranger := peer("10.0.0.1"), peer("203.0.113.200")
	f.Fuzz(func(t *testing.T, line, lie []byte) {
		client := proxies.Client(known, [][]byte{line})
		if !client.IsValid() || client.Zone() != "" || client.Is4In6() {
			t.Errorf("%q: the client is %s", line, client)
		}
		if got := proxies.Client(stranger, [][]byte{line, lie}); got != netip.MustParseAddr("203.0.113.200") {
			t.Errorf("%q, %q by a stranger: %s", line, lie, got)
		}
		if allProxies(proxies, line) {
			return // the next to the left has said who this is
		}
		for _, lines := range [][][]byte{{lie, line}, {slices.Concat(lie, []byte(","), line)}} {
			if got := proxies.Client(known, lines); got != client {
				t.Errorf("%q is %s, and behind %q it is %s", line, client, lie, got)
			}
		}
	})
}

func allProxies(proxies Proxies, line []byte) bool {
	for text := range bytes.SplitSeq(line, []byte(",")) {
		address, ok := parseForwarded(string(bytes.TrimSpace(text)))
		if !ok || !proxies.Include(address) {
			return false
		}
	}
	return true
}
