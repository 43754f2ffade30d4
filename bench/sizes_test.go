package bench

import (
	"bytes"
	"regexp"
	"testing"

	"remit/internal/redisproc"
)

// TestMemoryOfEveryKindIsMeasured keeps BenchmarkMemory working. Its results mean nothing for few objects.
func TestMemoryOfEveryKindIsMeasured(t *testing.T) {
	for _, k := range kinds {
		if _, keys, err := bytesEach(t, k, 20); err != nil || len(keys) == 0 {
			t.Errorf("%s: %v, %v", k.name, keys, err)
		}
	}
}

// TestCopiedSessionsEqualThoseOfTheService: BenchmarkGrowth charges and lists copies.
func TestCopiedSessionsEqualThoseOfTheService(t *testing.T) {
	c := newCrowd(t, startServiceOn(t, redisproc.Config{}), 2)
	c.growTo(t, 20)
	for i, a := range c.agents {
		if len(c.sessions[i]) != 10 {
			t.Fatalf("%d sessions, want 10", len(c.sessions[i]))
		}
		copied := c.sessions[i][9]
		first := answerTo(t, c.service, get("/sessions/"+a.session.String(), a.bearer()))
		other := answerTo(t, c.service, get("/sessions/"+copied.String(), a.bearer()))
		first, other = createdAt.ReplaceAll(first, nil), createdAt.ReplaceAll(other, nil) // derived from the id
		if want := bytes.ReplaceAll(first, []byte(a.session.String()), []byte(copied.String())); !bytes.Equal(other, want) {
			t.Errorf("the copy is %s, want %s", other, want)
		}
		source, err := c.readSource(copied)
		if want := c.sources[i]; err != nil || len(source.keys) != len(want.keys) || len(source.indexes) != len(want.indexes) {
			t.Errorf("Redis has %+v of the copy, %v; want as of %+v", source, err, want)
		}
		answerTo(t, c.service, a.charge(copied))
	}
	listed := answerTo(t, c.service, get("/sessions?status=active", c.asKey()))
	if count := bytes.Count(listed, []byte(`"agent_id"`)); count != 20 {
		t.Errorf("%d sessions are listed, want 20", count)
	}
	runBriefly(t, timed("pages", connect(t, c.addr, 2, func() turns { return c.pages(5) }).run))
}

var createdAt = regexp.MustCompile(`"created_at":"[^"]+"`)

func answerTo(t *testing.T, s *service, q call) []byte {
	t.Helper()
	conn := connect(t, s.addr, 1, same(q))[0]
	if err := conn.take(); err != nil {
		t.Fatal(err)
	}
	return conn.answer
}
