package service

import (
	"testing"

	"remit/internal/webhook"
	"remit/redisstore"
	"remit/server"
)

func TestSocketsFollowTheDescriptorLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		descriptors  uint64
		redisServers int
		want         sockets
	}{
		"plenty":                  {1 << 20, 1, sockets{32768, webhook.MostSockets}},
		"not known":               {1<<64 - 1, 1, sockets{32768, webhook.MostSockets}},
		"two thousand":            {2000, 1, sockets{2000 - 128 - 75 - 449, 449}},
		"two thousand, a cluster": {2000, 8, sockets{2000 - 128 - 8*75 - 318, 318}},
		"hardly any":              {256, 1, sockets{96, 32}},
		"one":                     {1, 1, sockets{1, webhook.LeastSockets}},
	} {
		got := socketsFor(test.descriptors, test.redisServers)
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		if own := server.ConnectionsOfOneAddress(got.clients); got.clients > 1 && own >= got.clients {
			t.Errorf("%s: one address may have %d of %d", name, own, got.clients)
		}
	}
}

// What is promised to clients, webhooks, Redis and the process fits into the limit, however low that is.
func TestSocketsFitIntoTheDescriptorLimit(t *testing.T) {
	t.Parallel()
	for descriptors := uint64(64); descriptors < 50_000; descriptors += 7 {
		got := socketsFor(descriptors, 1)
		others := min(otherDescriptors+redisstore.ConnectionsPerServer, int(descriptors)/2)
		if all := got.clients + got.webhooks + others; all > int(descriptors) {
			t.Fatalf("%d are promised of %d", all, descriptors)
		}
	}
}

func TestAClusterCountsAsSeveralServers(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]int{
		"": 1, "redis://a:1": 1, "redis+sentinel://a,b,c/main": 1, "redis+cluster://a": 8, "rediss+cluster://a,b,c,d,e,f,g,h,i": 9,
	} {
		if got := (&serve{storeFlags: storeFlags{RedisURL: redisstore.URL(url)}}).redisServers(); got != want {
			t.Errorf("%q: %d servers, want %d", url, got, want)
		}
	}
}
