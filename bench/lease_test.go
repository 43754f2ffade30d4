package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
	"remit/test/suite"
	"remit/test/tool"
)

const (
	leaseWarmUp  = 3 * time.Second // until a lease knows the pace
	leaseTurn    = 1000            // charges between two looks at the clock
	leaseRound   = 8000            // charges of the floor in a round
	leasedPerOne = 500             // leased charges in a round, for each of those
	timedCharges = 1_000_000
	sdkSeconds   = rounds
)

// leasedCharge is what an agent charges for a cheap step.
var leasedCharge = client.Charge{ActionType: "llm.call", Value: money.USD / 1_000_000}

// BenchmarkLease measures charges that the Go SDK takes from a lease, on one core, in rounds that alternate with charges
// over 256 connections. The other SDKs run their own loops. The work does not depend on b.N: run it with -benchtime 1x.
func BenchmarkLease(b *testing.B) {
	onlyLong(b)
	b.Run("go", func(b *testing.B) {
		b.ReportAllocs() // those that are reported below
		s := startProgram(b)
		direct, _ := overSocket(b, s, charging, connections)
		direct.name = "charge"
		lease := openLease(b, s)
		for began := time.Now(); time.Since(began) < leaseWarmUp; {
			noError(b, chargeTimes(lease, leaseTurn))
		}
		over := leased(s, lease)
		compareRounds(b, leaseRound, over, direct)
		// As go test does it, a whole number, rounded down. Renewals, about one a second, have some.
		before := mallocs()
		result := must(over.run(leaseRound))(b)
		b.ReportMetric(float64((mallocs()-before)/int64(result.operations)), "allocs/op")
		latencies := must(spread(1, timedCharges, func(int) error { return chargeTimes(lease, 1) }))(b) // with the cost of reading the clock
		b.ReportMetric(float64(quantile(0.99, latencies)), "p99-ns")
		b.ReportMetric(float64(median(latencies)), "p50-ns")
	})
	b.Run("typescript", func(b *testing.B) { reportSDK(b, typeScriptLease(b)) })
	b.Run("python", func(b *testing.B) { reportSDK(b, pythonLease(b)) })
}

// leasedSession creates an agent with a session that allows leases.
func leasedSession(tb testing.TB, s *service) agent {
	tb.Helper()
	a := s.newAgent(tb)
	body := strings.TrimSuffix(a.sessionBody(), "}") + `,"max_lease_seconds":3600}`
	a.session = s.ask(tb, "/v1/sessions", body).ID
	return a
}

func openLease(tb testing.TB, s *service) *client.Lease {
	tb.Helper()
	a := leasedSession(tb, s)
	remit := must(client.New("http://"+s.addr, client.Options{}))(tb)
	lease := must(remit.Agent(a.id.String(), a.secret).Session(a.session.String()).Lease(context.Background(), client.LeaseOptions{}))(tb)
	tb.Cleanup(func() { noError(tb, lease.Close(context.Background())) })
	return lease
}

func chargeTimes(lease *client.Lease, n int) error {
	ctx := context.Background()
	for range n {
		if err := lease.Charge(ctx, leasedCharge); err != nil {
			return err
		}
	}
	return nil
}

// leased makes charges one after the other, while this process, renewals included, may use one core.
func leased(s *service, lease *client.Lease) contender {
	return contender{name: "lease", server: s.pid, redis: s.redisPID, run: func(n int) (round, error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		n *= leasedPerOne
		began := time.Now()
		err := chargeTimes(lease, n)
		took := time.Since(began)
		return round{operations: n, rate: float64(n) / took.Seconds(), p50: took / time.Duration(n)}, err
	}}
}

// typeScriptLease returns the command that charges a lease with the built TypeScript SDK.
func typeScriptLease(tb testing.TB) []string {
	tb.Helper()
	const source = "../sdk/typescript"
	tool.Reads(tb, filepath.Join(source, "src"), filepath.Join(source, "tsconfig.json"), "lease")
	tool.Install(tb, source)
	built := tb.TempDir()
	noError(tb, os.WriteFile(filepath.Join(built, "package.json"), []byte(`{"type":"module"}`), 0o600))
	compile := tool.Command(context.Background(), source, "npm", "exec", "--", "tsc", "-p", "tsconfig.json", "--outDir", built)
	if output, err := compile.CombinedOutput(); err != nil {
		tb.Fatalf("the TypeScript SDK does not build: %v\n%s", err, output)
	}
	return []string{tool.Path(tb, "node"), "lease/lease.mjs", filepath.Join(built, "index.js")}
}

// pythonLease returns the command that charges a lease with the Python SDK.
func pythonLease(tb testing.TB) []string {
	tb.Helper()
	tool.Reads(tb, "lease", "../sdk/python/src")
	return []string{tool.Path(tb, "python3"), "-B", "lease/lease.py"}
}

func reportSDK(b *testing.B, command []string) {
	b.Helper()
	reportAll(b, map[string]float64{"ops/s": median(sdkRates(b, command, leaseWarmUp, sdkSeconds))})
}

// sdkRates runs a command with a leased session in its environment, and returns the rates that it prints.
func sdkRates(tb testing.TB, command []string, warmUp time.Duration, seconds int) (rates []float64) {
	tb.Helper()
	s := startProgram(tb)
	a := leasedSession(tb, s)
	packages := must(filepath.Abs("../sdk/python/src"))(tb)
	run := exec.Command(command[0], append(command[1:], fmt.Sprint(warmUp.Seconds()), strconv.Itoa(seconds))...)
	run.Env = append(os.Environ(), "REMIT_ADDR=http://"+s.addr, "REMIT_AGENT="+a.id.String(), "REMIT_SECRET="+a.secret,
		"REMIT_SESSION="+a.session.String(), "PYTHONPATH="+packages)
	var failure strings.Builder
	run.Stderr = &failure
	output, err := run.Output()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", command, err, failure.String())
	}
	for _, line := range strings.Fields(string(output)) {
		rates = append(rates, must(strconv.ParseFloat(line, 64))(tb))
	}
	return rates
}

// TestLeasedChargesAreMeasured keeps BenchmarkLease working: the lease is charged, and the session with it.
func TestLeasedChargesAreMeasured(t *testing.T) {
	s := startProgram(t)
	result, err := leased(s, openLease(t, s)).measure(1)
	if err != nil || result.operations != leasedPerOne || result.rate <= 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestTheOtherSDKsPrintTheirRatesOfLeasedCharges(t *testing.T) {
	commands := [][]string{pythonLease(t)}
	if suite.Long {
		commands = append(commands, typeScriptLease(t))
	}
	for _, command := range commands {
		if rates := sdkRates(t, command, 0, 1); len(rates) != 1 || rates[0] <= 0 {
			t.Errorf("%s: %v", command, rates)
		}
	}
}
