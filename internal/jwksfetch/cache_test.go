package jwksfetch

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// TestTheCacheStaysWithinItsBounds also compares what the cache counts with what it has, after every step.
func TestTheCacheStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(bounds{entries: 20, bytes: 40 * entrySize})
		tenants := []uuid.UUID{{1}, {2}, {3}, {4}, {5}, {6}}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			s := Source{rapid.SampledFrom(tenants).Draw(t, "tenant"), fmt.Sprint("https://a.example/", rapid.IntRange(0, 9).Draw(t, "url")), 8}
			e := c.entry(s)
			if c.sources[s] != e || c.entries.Front().Value != any(e) {
				t.Fatal("the entry that was asked for is not the most recently used one")
			}
			checkCache(t, &c)
		}
	})
}

func checkCache(t *rapid.T, c *cache) {
	held, entries := 0, 0
	for id, of := range c.tenants {
		bytes := 0
		for element := of.entries.Front(); element != nil; element = element.Next() {
			bytes += element.Value.(*entry).size
		}
		if bytes != of.bytes || of.entries.Len() == 0 || of.entries.Len() > c.bounds.entries/4 || bytes > c.bounds.bytes/4 {
			t.Fatalf("tenant %s has %d entries of %d bytes, and counts %d", id, of.entries.Len(), bytes, of.bytes)
		}
		held, entries = held+bytes, entries+of.entries.Len()
	}
	if held != c.held || entries != c.entries.Len() || entries != len(c.sources) || entries > c.bounds.entries || held > c.bounds.bytes {
		t.Fatalf("%d entries of %d bytes; the cache counts %d, %d and %d", entries, held, c.entries.Len(), len(c.sources), c.held)
	}
}

func TestTenantsThatFillTheCacheLoseTheirOwn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bounds  bounds
		tenants byte
		least   int // sources that are left
	}{
		"one":                   {usualBounds, 1, usualBounds.entries / 4},
		"several, with entries": {bounds{entries: 400, bytes: 1 << 30}, 8, 300},
		"several, with bytes":   {bounds{entries: 1 << 30, bytes: 400 * entrySize}, 8, 300},
	} {
		c := newCache(test.bounds)
		kept := c.entry(Source{uuid.UUID{1}, "https://a.example", 8})
		for i := range usualBounds.entries {
			for tenant := range test.tenants {
				c.entry(Source{uuid.UUID{2 + tenant}, fmt.Sprint("https://b.example/", i), 8})
			}
		}
		if kept.forgotten || len(c.tenants) != 1+int(test.tenants) || len(c.sources) < test.least {
			t.Errorf("%s: %d sources of %d tenants are left, the small one's: %t", name, len(c.sources), len(c.tenants), !kept.forgotten)
		}
	}
}
