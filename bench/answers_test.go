package bench

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/test/prover"
)

// TestEveryPathAndItsFloorsAnswer keeps the benchmarks working: each contender makes a few operations and checks their
// answers. Durations mean nothing here.
func TestEveryPathAndItsFloorsAnswer(t *testing.T) {
	s := startProgram(t)
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			over, floors := overSocket(t, s, p, 3)
			runBriefly(t, append(floors, over)...)
		})
	}
	t.Run("proof", func(t *testing.T) {
		over, floor := proofs(t, s, "ES256", 3)
		runBriefly(t, over, floor)
	})
	for _, algorithm := range proofAlgorithms {
		t.Run("check of a proof by "+algorithm, func(t *testing.T) {
			key := prover.New(algorithm)
			runBriefly(t, checkingProof(t, key), checkingSignature(t, key))
		})
	}
	for _, sessions := range []int{1, 10} {
		t.Run(fmt.Sprintf("batch of %d sessions", sessions), func(t *testing.T) {
			over, floor := batches(t, s, sessions, 3)
			runBriefly(t, over, floor)
		})
	}
}

// runBriefly runs two rounds of each contender, to find what the first uses up and the second needs.
func runBriefly(t *testing.T, contenders ...contender) {
	t.Helper()
	for _, c := range contenders {
		for range 2 {
			if _, err := c.measure(20); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// TestBareAnswersWithTheRequestedSize: a floor with shorter answers would be too fast.
func TestBareAnswersWithTheRequestedSize(t *testing.T) {
	addr, _ := startBare(t, 400)
	conn := connect(t, addr, 1, same(get("/", "")))[0]
	if err := conn.take(); err != nil || conn.size != 400 {
		t.Errorf("%d bytes, %v; want 400", conn.size, err)
	}
}

// TestRedisBenchmarkIsReadFromTheEnd: before the numbers the line has the command, with arbitrary bytes.
func TestRedisBenchmarkIsReadFromTheEnd(t *testing.T) {
	got, err := parseRedisBenchmark("\"test\",\"rps\"\n\"EVALSHA \",\"\n\",\"25000.50\",\"0.1\",\"0.1\",\"0.120\",\"0.2\",\"0.3\",\"1.0\"\n")
	if want := (round{rate: 25000.5, p50: 120 * time.Microsecond}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := parseRedisBenchmark("ERR no such script"); err == nil {
		t.Error("what is no result is taken for one")
	}
}

// TestAllocationsCountForTheirOwner: those of the standard library count for its caller.
func TestAllocationsCountForTheirOwner(t *testing.T) {
	for function, want := range map[string]struct {
		of  string
		own bool
	}{
		"remit/redisstore.(*Store).Charge.func1":             {"remit/redisstore", true},
		"remit/bench.TestX":                                  {"remit/bench", false},
		"github.com/redis/go-redis/v9/internal/proto.(*R).X": {"github.com/redis/go-redis/v9/internal/proto", false},
		"strings.(*Builder).grow":                            {"strings", false},
	} {
		if got := packageOf(function); got != want.of || isOwn(function) != want.own {
			t.Errorf("%s: package %s, own %v; want %+v", function, got, isOwn(function), want)
		}
	}
	if !isStandard("encoding/json") || isStandard("github.com/google/uuid") || isStandard("remit/server") {
		t.Error("the standard library is not told from the rest")
	}
}

func TestInProcessPathsAnswer(t *testing.T) {
	s := startService(t)
	for _, p := range paths {
		direct, floors := inProcess(t, s, p)
		runBriefly(t, append(floors, timed(p.name, direct.run))...)
	}
}

// TestMemoryOfEveryKindIsMeasured keeps BenchmarkMemory working. Its results mean nothing for few objects.
func TestMemoryOfEveryKindIsMeasured(t *testing.T) {
	for _, k := range kinds {
		if _, keys := bytesEach(t, k, 20); len(keys) == 0 {
			t.Errorf("%s has no keys", k.name)
		}
	}
}

// TestCopiedSessionsEqualThoseOfTheService: BenchmarkGrowth charges and lists copies.
func TestCopiedSessionsEqualThoseOfTheService(t *testing.T) {
	c := newCrowd(t, startServiceOn(t, redisproc.Config{}, observers{}), 2)
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
		if source, want := c.readSource(t, copied), c.sources[i]; len(source.keys) != len(want.keys) || len(source.indexes) != len(want.indexes) {
			t.Errorf("Redis has %+v of the copy; want as of %+v", source, want)
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
	noError(t, conn.take())
	return conn.answer
}
