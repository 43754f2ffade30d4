package bench

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// heldLoad is the size of the overload.
type heldLoad struct {
	idle, slow, active int           // connections
	calls              int           // per round
	fleet, crowd       int           // connections: of a large fleet, and of the overload
	warmUp, span       time.Duration // of an open-loop load
	rounds             int
}

var fullLoad = heldLoad{
	idle: idleConnections, slow: 1000, active: connections, calls: 40_000, fleet: 1000, crowd: 2048,
	warmUp: 6 * time.Second, span: 6 * time.Second, rounds: rounds,
}

// BenchmarkHeld measures the rate and latency of the service under overload.
func BenchmarkHeld(b *testing.B) {
	onlyLong(b)
	b.Run("connections", func(b *testing.B) { reportAll(b, besideIdleAndSlow(b, fullLoad)) })
	b.Run("overload", func(b *testing.B) { reportAll(b, atTwiceTheRate(b, fullLoad)) })
}

// besideIdleAndSlow compares the rates of a program with and without other connections that are idle or slow.
func besideIdleAndSlow(tb testing.TB, load heldLoad) map[string]float64 {
	tb.Helper()
	needFiles(tb, load.idle+load.slow+2*load.active+100)
	alone, crowded := startHeld(tb, load.active), startHeld(tb, load.active)
	greet(tb, connect(tb, crowded.addr, load.idle, same(get("/healthz", ""))))
	trickle(tb, crowded.addr, load.slow)
	var without, with []float64
	for range load.rounds {
		without = append(without, alone.rate(tb, load.calls))
		with = append(with, crowded.rate(tb, load.calls))
	}
	return map[string]float64{"rate-x-alone": median(with) / median(without), "ops/s": median(with)}
}

// atTwiceTheRate measures the maximum rate of the program, and its behaviour at half and at twice that rate.
func atTwiceTheRate(tb testing.TB, load heldLoad) map[string]float64 {
	tb.Helper()
	needFiles(tb, load.crowd+load.active+100)
	p := startHeld(tb, load.active)
	keepApart(tb, p)
	call := p.agent.charge(p.agent.session)
	call.expect = []byte("HTTP/1.1 ")
	crowd := connect(tb, p.addr, load.crowd, same(call))
	greet(tb, crowd)
	seen := map[string][]float64{} // in each round
	var before, after float64
	for range load.rounds {
		peak := p.rate(tb, load.calls)
		fleet := must(crowd[:load.fleet].shedOf(load.calls))(tb)
		half := offer(tb, crowd, peak/2, load.span)
		if before == 0 {
			before = resident(tb, p.pid)
		}
		offer(tb, crowd, 2*peak, load.warmUp)
		twice := offer(tb, crowd, 2*peak, load.span)
		after = resident(tb, p.pid)
		measured := map[string]float64{
			"peak-ops/s": peak, "goodput-ops/s": twice.goodput(), "shed-share": twice.refused(), "fleet-shed-share": fleet,
			"p99-normal-ms": p99(half.served), "p99-ms": p99(twice.served), "late-p99-ms": p99(twice.late),
			"sent-p99-normal-ms": p99(half.since), "sent-p99-ms": p99(twice.since),
		}
		if len(twice.shed) > 0 {
			measured["shed-p99-ms"] = p99(twice.shed)
		}
		for name, value := range measured {
			seen[name] = append(seen[name], value)
		}
		if testing.Verbose() {
			tb.Logf("peak %.0f/s; %.2f %% shed of a fleet; half: %s; twice: %s; RSS %.0f MiB", peak, 100*fleet, half, twice, after)
		}
	}
	metrics := map[string]float64{"RSS-x-before": after / before}
	for name, values := range seen {
		metrics[name] = median(values)
	}
	metrics["goodput-x-peak"] = metrics["goodput-ops/s"] / metrics["peak-ops/s"]
	metrics["p99-x-normal"] = metrics["p99-ms"] / metrics["p99-normal-ms"]
	metrics["sent-p99-x-normal"] = metrics["sent-p99-ms"] / metrics["sent-p99-normal-ms"]
	return metrics
}

func p99(of []time.Duration) float64 { return float64(quantile(0.99, of)) / 1e6 }

func offer(tb testing.TB, c clients, perSecond float64, span time.Duration) offered {
	tb.Helper()
	result := must(c.offer(perSecond, span))(tb)
	if len(result.served) == 0 {
		tb.Fatal("nothing was served")
	}
	return result
}

// keepApart assigns one half of the cores to the program and its Redis, and the other to the clients. Otherwise the clients of
// a double load take processor time from the service.
func keepApart(tb testing.TB, p held) {
	tb.Helper()
	var may unix.CPUSet
	noError(tb, unix.SchedGetaffinity(0, &may))
	var all []string
	for core := range 64 * len(may) {
		if may.IsSet(core) {
			all = append(all, strconv.Itoa(core))
		}
	}
	half := len(all) / 2
	if half == 0 {
		return
	}
	tb.Cleanup(func() { runOnCores(tb, os.Getpid(), all) })
	runOnCores(tb, os.Getpid(), all[half:])
	runOnCores(tb, p.pid, all[:half])
	runOnCores(tb, p.redisPID, all[:half])
}

func runOnCores(tb testing.TB, pid int, cores []string) {
	tb.Helper()
	command := exec.Command("taskset", "--all-tasks", "--cpu-list", "--pid", strings.Join(cores, ","), strconv.Itoa(pid))
	if output, err := command.CombinedOutput(); err != nil {
		tb.Fatalf("taskset: %v\n%s", err, output)
	}
}

// held is a running program with charging clients.
type held struct {
	*service
	agent  agent
	active clients
}

func startHeld(tb testing.TB, active int) held {
	tb.Helper()
	s := startProgram(tb)
	a := s.newAgent(tb)
	clients := connect(tb, s.addr, active, same(a.charge(a.session)))
	greet(tb, clients)
	return held{s, a, clients}
}

// rate returns how many charges per second the active clients complete.
func (h held) rate(tb testing.TB, calls int) float64 {
	tb.Helper()
	return must(timed("", h.active.run).run(calls))(tb).rate
}

const (
	slowPace = 500 * time.Millisecond // between two bytes of a slow request
	slowHead = "GET /healthz HTTP/1.1\r\nHost: bench\r\nX-Slow: "
)

// trickle opens connections that send an endless request byte by byte, and reopens those that the service closes, until the
// test or benchmark ends.
func trickle(tb testing.TB, addr string, connections int) {
	tb.Helper()
	var group sync.WaitGroup
	tb.Cleanup(group.Wait) // its context has ended by then
	for range connections {
		conn := must(net.Dial("tcp", addr))(tb)
		must(fmt.Fprint(conn, slowHead))(tb)
		group.Go(func() {
			defer func() { _ = conn.Close() }()
			for pace := time.Tick(slowPace); ; {
				select {
				case <-tb.Context().Done():
					return
				case <-pace:
				}
				if _, err := conn.Write([]byte("x")); err == nil {
					continue
				}
				_ = conn.Close()
				if again, err := net.Dial("tcp", addr); err == nil {
					conn = again
					_, _ = fmt.Fprint(conn, slowHead) // if it fails, the next byte does
				}
			}
		})
	}
}
