package faults

import (
	"regexp"
	"slices"
	"strings"
)

var goroutineHeader = regexp.MustCompile(`(?m)^goroutine [1-9]\d* .*\[`)

// goroutinesIn returns the stacks in a dump of the Go runtime, without those of idle and background goroutines.
func goroutinesIn(dump string) []string {
	var stacks []string
	places := goroutineHeader.FindAllStringIndex(dump, -1)
	for n, place := range places {
		end := len(dump)
		if n+1 < len(places) {
			end = places[n+1][0]
		}
		stack := dump[place[0]:end]
		if registers := strings.Index(stack, "\nrax "); registers >= 0 {
			stack = stack[:registers]
		}
		if !isIdle(stack) {
			stacks = append(stacks, strings.TrimSpace(stack))
		}
	}
	return withoutBackground(stacks)
}

// background names what an instance does beside its requests: it writes the usage of organizations to Redis, serves a feed as long
// as there is something to append to it, records what is due of an organization, and reads keys.
const background = `remit/redisstore\.\(\*dueRecorder\)\.recordFor|remit/redisstore/internal/kernel\.\(\*Core\)\.keepUsage|remit/redisstore/internal/feed\.\(\*Feeds\)\.serve|remit/server/internal/access\.\(\*keyReads\)\.run`

// mostServed is how many feeds may be served at once: one for each organization of a fleet and its trees, and some to spare. More
// goroutines that serve feeds are leaked.
const mostServed = 8

// mostStarted is how many goroutines one of the background may have started for its work. More are leaked.
const mostStarted = 8

var serving = regexp.MustCompile(`\nremit/redisstore/internal/feed\.\(\*Feeds\)\.serve\(`)

// polling names what polls keys and settings, and what looks for feeds without a leader, or for what is due.
const polling = `remit/internal/service\.poll|remit/redisstore/internal/feed\.\(\*Feeds\)\.patrol|remit/redisstore\.\(\*dueRecorder\)\.run`

var (
	shortLived  = regexp.MustCompile(`\n(?:` + background + `|github\.com/redis/go-redis/v9/internal/pool\.\(\*ConnPool\)\.tryDial)\(`)
	poller      = regexp.MustCompile(`(?s)^goroutine (\d+) .*\n(?:` + background + `|` + polling + `)\(`)
	partOfAPoll = regexp.MustCompile(`\ncreated by github\.com/redis/go-redis/.*\.\(\*ClusterClient\)\.processPipeline in goroutine (\d+)\n`)
	started     = regexp.MustCompile(`\ncreated by sync\.\(\*WaitGroup\)\.Go in goroutine (\d+)\n`)
)

// withoutBackground removes goroutines that come and go while an instance has no requests: those that go-redis starts for
// each node when the instance polls keys and settings, the one that reads the keys, those that write the usage of
// organizations to Redis, patrol the feeds and look for what is due, with as many others as they start, and those that dial a lost
// server once a second.
func withoutBackground(stacks []string) []string {
	pollers := map[string]bool{}
	for _, stack := range stacks {
		if found := poller.FindStringSubmatch(stack); found != nil {
			pollers[found[1]] = true
		}
	}
	served, startedBy := 0, map[string]int{}
	return slices.DeleteFunc(stacks, func(stack string) bool {
		if serving.MatchString(stack) {
			served++
			return served <= mostServed
		}
		if found := started.FindStringSubmatch(stack); found != nil && pollers[found[1]] {
			startedBy[found[1]]++
			return startedBy[found[1]] <= mostStarted
		}
		found := partOfAPoll.FindStringSubmatch(stack)
		return found != nil && pollers[found[1]] || shortLived.MatchString(stack)
	})
}

// isIdle recognises goroutines of the runtime itself, which run no other code, and workers of fasthttp that wait for a
// connection: only their worker function receives from a channel.
func isIdle(stack string) bool {
	header, frames, _ := strings.Cut(stack, "\n")
	for frame := range strings.Lines(frames) {
		if strings.HasPrefix(frame, "\t") || strings.HasPrefix(frame, "runtime.") {
			continue
		}
		return strings.HasPrefix(frame, "created by runtime.") ||
			strings.Contains(header, "chan receive") && strings.Contains(frame, "fasthttp.(*workerPool).workerFunc")
	}
	return true
}

var called = regexp.MustCompile(`(?m)^(?:created by )?([^\t\n ]+?)(?:\([^()\n]*\))?(?: in goroutine \d+)?$`)

// beyond returns the stacks of goroutines that do what fewer others do: by the functions at their ends, without arguments.
func beyond(stacks, others []string) []string {
	task := func(stack string) string {
		var names []string
		for _, found := range called.FindAllStringSubmatch(stack, -1) {
			names = append(names, found[1])
		}
		return strings.Join(names[max(0, len(names)-3):], "\n")
	}
	left := map[string]int{}
	for _, stack := range others {
		left[task(stack)]++
	}
	return slices.DeleteFunc(slices.Clone(stacks), func(stack string) bool {
		left[task(stack)]--
		return left[task(stack)] >= 0
	})
}
