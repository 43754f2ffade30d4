package conn

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"testing"
)

func TestTheClientAddressIsTheOneThatTrustedProxiesSaw(t *testing.T) {
	t.Parallel()
	proxies := Proxies{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("2001:db8:1::/48"),
	}
	for name, test := range map[string]struct {
		peer  string
		lines []string
		want  string
	}{
		"a proxy that says nothing":                 {"10.0.0.1", nil, "10.0.0.1"},
		"a proxy that names its client":             {"10.0.0.1", []string{"203.0.113.9"}, "203.0.113.9"},
		"a peer that is no proxy":                   {"203.0.113.1", []string{"203.0.113.9"}, "203.0.113.1"},
		"a chain of proxies":                        {"10.0.0.1", []string{"203.0.113.9, 192.0.2.7, 10.9.9.9"}, "203.0.113.9"},
		"a left part made up by the client":         {"10.0.0.1", []string{"1.1.1.1, 10.0.0.3, 203.0.113.9"}, "203.0.113.9"},
		"a client within the trusted networks":      {"10.0.0.1", []string{"10.0.0.5, 10.0.0.2"}, "10.0.0.5"},
		"several lines, the last one counts":        {"10.0.0.1", []string{"1.1.1.1", "203.0.113.9"}, "203.0.113.9"},
		"several lines, a proxy in the last":        {"10.0.0.1", []string{"1.1.1.1, 203.0.113.9", "10.0.0.2"}, "203.0.113.9"},
		"a line without an address":                 {"10.0.0.1", []string{"203.0.113.9", ""}, "10.0.0.1"},
		"garbage alone":                             {"10.0.0.1", []string{"unknown"}, "10.0.0.1"},
		"garbage left of a proxy":                   {"10.0.0.1", []string{"203.0.113.9, _hidden, 10.0.0.2"}, "10.0.0.2"},
		"an address with a port":                    {"10.0.0.1", []string{"203.0.113.9:4711"}, "203.0.113.9"},
		"a leading zero, which has two readings":    {"10.0.0.1", []string{"203.0.113.010"}, "10.0.0.1"},
		"an IPv6 client":                            {"10.0.0.1", []string{"2001:db8:2::9"}, "2001:db8:2::9"},
		"an IPv6 client with a port":                {"10.0.0.1", []string{"[2001:db8:2::9]:4711"}, "2001:db8:2::9"},
		"an IPv6 proxy":                             {"2001:db8:1::1", []string{"2001:db8:2::9, 2001:db8:1::2"}, "2001:db8:2::9"},
		"an IPv6 peer that is no proxy":             {"2001:db8:3::1", []string{"203.0.113.9"}, "2001:db8:3::1"},
		"an IPv4 client wrapped into IPv6":          {"10.0.0.1", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		"an IPv4 proxy wrapped into IPv6":           {"10.0.0.1", []string{"203.0.113.9, ::ffff:10.0.0.2"}, "203.0.113.9"},
		"a zone, which is one of another machine's": {"10.0.0.1", []string{"fe80::1%eth0"}, "fe80::1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines [][]byte
			for _, line := range test.lines {
				lines = append(lines, []byte(line))
			}
			if got := proxies.Client(peer(test.peer), lines); got != netip.MustParseAddr(test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// peer is the address of the other end of a connection.
func peer(address string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1234))
}

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
