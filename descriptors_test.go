package main

import (
	"testing"

	"remit/redisstore"
	"remit/server"
)

func TestConnectionsFollowTheDescriptorLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		descriptors  uint64
		redisServers int
		want         int
	}{
		"plenty":                  {1 << 20, 1, 32768},
		"not known":               {1<<64 - 1, 1, 32768},
		"two thousand":            {2000, 1, 2000 - 128 - 75},
		"two thousand, a cluster": {2000, 8, 2000 - 128 - 8*75},
		"hardly any":              {256, 1, 128},
		"one":                     {1, 1, 1},
	} {
		got := connectionsFor(test.descriptors, test.redisServers)
		if got != test.want {
			t.Errorf("%s: %d connections, want %d", name, got, test.want)
		}
		if own := server.ConnectionsOfOneAddress(got); got > 1 && own >= got {
			t.Errorf("%s: one address may have %d of %d", name, own, got)
		}
	}
}

func TestAClusterCountsAsSeveralServers(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]int{
		"": 1, "redis://a:1": 1, "redis+sentinel://a,b,c/main": 1, "redis+cluster://a": 8, "rediss+cluster://a,b,c,d,e,f,g,h,i": 9,
	} {
		if got := (&serve{RedisURL: redisstore.URL(url)}).redisServers(); got != want {
			t.Errorf("%q: %d servers, want %d", url, got, want)
		}
	}
}
