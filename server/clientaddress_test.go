package server

import (
	"net/netip"
	"testing"
)

// Each address may create one organization, so a request that shares a bucket with an earlier one is refused.
func TestWhatCountsAsOneAddress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		forwarded [2][]string // lines of X-Forwarded-For
		second    int         // status
	}{
		"the same IPv4 address":            {[2][]string{{"203.0.113.1"}, {"203.0.113.1"}}, 429},
		"two IPv4 addresses":               {[2][]string{{"203.0.113.1"}, {"203.0.113.2"}}, 201},
		"one IPv6 /64":                     {[2][]string{{"2001:db8:0:1::1"}, {"2001:db8:0:1:ffff:ffff:ffff:ffff"}}, 429},
		"two IPv6 /64":                     {[2][]string{{"2001:db8:0:1::1"}, {"2001:db8:0:2::1"}}, 201},
		"IPv4 and the same within IPv6":    {[2][]string{{"203.0.113.1"}, {"::ffff:203.0.113.1"}}, 429},
		"one address, another story to it": {[2][]string{{"1.1.1.1", "203.0.113.1"}, {"2.2.2.2, 203.0.113.1", "127.0.0.9"}}, 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := runServer(t, "", Config{
				Limits: Limits{OrganizationsPerMinute: 1}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			})
			client := from(t, "")
			for i, want := range []int{201, test.second} {
				var lines []string
				for _, line := range test.forwarded[i] {
					lines = append(lines, "X-Forwarded-For", line)
				}
				if got := s.post(t, client, "/v1/organizations", `{"name":"acme"}`, lines...); got.status != want {
					t.Errorf("request %d is answered %d, want %d", i+1, got.status, want)
				}
			}
		})
	}
}
