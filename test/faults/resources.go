package faults

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// quietPatience is how long connections and files opened under load may take to close after it.
	quietPatience = 15 * time.Second
	// steadyTime is how long the number of open files of an instance, or of connections, must stay the same before it counts as idle.
	steadyTime = 200 * time.Millisecond
	// poolSize is how many connections an instance keeps to a Redis server at most.
	poolSize = 64 + 10 // 10 are for pipelines
)

// resources is what idle instances hold.
type resources struct {
	goroutines  []string // their stacks, of one instance
	files       int      // of all instances
	connections int      // of all instances to all Redis servers
}

// awaitSteady returns when the instance has closed the connections that its clients have closed.
func awaitSteady(i *Instance) {
	_, _ = steady(func() (int, error) {
		n, _ := openFiles(i.PID()) // 0 for one that has ended
		return n, nil
	})
}

// steady returns a number once it has stayed the same for a while.
func steady(count func() (int, error)) (last int, err error) {
	last = -1
	for since, deadline := time.Now(), time.Now().Add(quietPatience); time.Since(since) < steadyTime && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		n, err := count()
		if err != nil {
			return 0, err
		}
		if n != last {
			last, since = n, time.Now()
		}
	}
	return last, nil
}

// countFiles returns how many file descriptors the running instances have together.
func countFiles(instances []*Instance) int {
	sum := 0
	for _, i := range instances {
		if n, err := openFiles(i.PID()); err == nil && i.Runs() {
			sum += n
		}
	}
	return sum
}

// countConnections returns how many connections the Redis servers have together, without those of these clients.
func countConnections(ctx context.Context, servers []*redis.Client) (sum int, err error) {
	for _, server := range servers {
		clients, err := server.Do(ctx, "CLIENT", "LIST", "TYPE", "normal").Text()
		if err != nil {
			return 0, err
		}
		sum += countClients(clients) - 1
	}
	return sum, nil
}

// countClosed returns how many connections of the instances a Redis server that was killed has closed: a pool keeps one until it takes it.
func countClosed(instances []*Instance, servers []*redis.Client) (sum int) {
	var ports []int64
	for _, server := range servers {
		_, text, _ := net.SplitHostPort(server.Options().Addr)
		if port, err := strconv.ParseInt(text, 10, 64); err == nil {
			ports = append(ports, port)
		}
	}
	for _, i := range instances {
		if i.Runs() {
			sum += closedByServer(i.PID(), ports)
		}
	}
	return sum
}

// countClients returns how many clients are in a list, without sentinels, which come and go.
func countClients(list string) int {
	n := 0
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " name=sentinel-") {
			n++
		}
	}
	return n
}

// checkOpen waits for open files and connections to return to the baseline, and returns what has not returned in time.
func checkOpen(ctx context.Context, baseline resources, instances []*Instance, servers []*redis.Client) []Violation {
	for deadline := time.Now().Add(quietPatience); ; time.Sleep(20 * time.Millisecond) {
		var open []Violation
		if connections, err := countConnections(ctx, servers); err != nil {
			open = []Violation{violationOf(RuleUnread, "connections to Redis", "%v", err)}
		} else {
			connections += countClosed(instances, servers)
			open = compareOpen(baseline, resources{files: countFiles(instances), connections: connections}, len(instances)*max(1, len(servers)))
		}
		if len(open) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return append(open, describeOpen(instances)...)
		}
	}
}

// describeOpen lists the file descriptors of the running instances.
func describeOpen(instances []*Instance) (out []Violation) {
	for _, i := range instances {
		if i.Runs() {
			out = append(out, violationOf(RuleFiles, i.URL, "open at the end:\n\t%s", descriptorsOf(i.PID())))
		}
	}
	return out
}

// compareOpen allows as many connections as the pools may keep. Everything else must be as it was before.
func compareOpen(before, now resources, pools int) []Violation {
	var out []Violation
	if now.connections > pools*poolSize {
		out = append(out, violationOf(RuleConns, "Redis", "%d connections, pools hold %d", now.connections, pools*poolSize))
	}
	if left := (now.files - now.connections) - (before.files - before.connections); left > 0 {
		out = append(out, violationOf(RuleFiles, "the service", "%d file descriptors more than before, without connections to Redis (%+v, now %+v)",
			left, before, now))
	}
	return out
}

// checkGoroutines ends the instance, and compares how many goroutines it had with those of another idle instance.
func checkGoroutines(i *Instance, atRest []string) []Violation {
	awaitSteady(i)
	stacks, err := i.Goroutines()
	if err != nil {
		return []Violation{violationOf(RuleGoroutines, i.URL, "%v", err)}
	}
	if len(stacks) > len(atRest) {
		return []Violation{violationOf(RuleGoroutines, i.URL, "%d, at rest it was %d, without:\n%v", len(stacks), len(atRest), beyond(stacks, atRest))}
	}
	return nil
}
