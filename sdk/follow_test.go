//go:build long

package sdk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"remit/client"
	"remit/test/serviceproc"
)

// Followers of all events and of an agent's resume by themselves after the service was killed, and after their own restart
// from the last event that they have printed. They get each event once.
func TestFollowersResumeAfterTheServiceAndAfterThemselves(t *testing.T) {
	t.Parallel()
	languages := buildAll(t)
	dir := t.TempDir()
	service := must(serviceproc.Launch(dir))(t)
	remit := must(client.New(service.URL, client.Options{}))(t)
	made := must(remit.CreateOrganization(t.Context(), client.OrganizationParams{Name: "acme"}))(t)
	o := remit.Organization(string(made.APIKey))
	agent := must(o.CreateAgent(t.Context(), client.AgentParams{Name: "scout"}))(t)
	settings := []string{
		"REMIT_ADDR=" + service.URL, "REMIT_API_KEY=" + string(made.APIKey), "REMIT_AGENT=" + agent.ID, "REMIT_SECRET=" + string(agent.Secret),
	}
	var followers []*follower
	for _, l := range languages {
		followers = append(followers, &follower{l, "follow", "0", nil, nil}, &follower{l, "trail", "", nil, nil})
	}
	change := func() {
		for range 3 {
			must(o.SuspendAgent(t.Context(), agent.ID, "again"))(t)
			must(o.ResumeAgent(t.Context(), agent.ID, ""))(t)
		}
	}
	each := func(step func(*follower)) {
		for _, f := range followers {
			step(f)
		}
	}

	change()
	each(func(f *follower) { f.start(t, settings); f.await(t, 6) })
	service.Kill()
	address := strings.TrimPrefix(service.URL, "http://")
	service = must(serviceproc.LaunchWith(dir, []string{"REMIT_LISTEN=" + address, "REMIT_DATA_DIR=" + filepath.Join(dir, "data")}))(t)
	t.Cleanup(func() {
		if err := service.Stop(); err != nil {
			t.Error(err)
		}
	})
	change()
	each(func(f *follower) { f.await(t, 12); f.process.Kill() })
	change()
	each(func(f *follower) { f.start(t, settings); f.await(t, 18); f.process.Kill() })

	each(func(f *follower) {
		lines := slices.Sorted(slices.Values(f.printed()))
		if f.seen()[0] != "agent.created" || len(slices.Compact(lines)) != len(f.printed()) {
			t.Errorf("%s %s: %q", f.name, f.what, f.printed())
		}
	})
}

// follower is the program of an SDK that prints events.
type follower struct {
	language

	what    string // follow or trail
	after   string // what it starts after
	lines   []string
	process *serviceproc.Process
}

// start starts the program after the last event that it has printed before.
func (f *follower) start(t *testing.T, settings []string) {
	t.Helper()
	f.lines = f.printed()
	if len(f.lines) > 0 {
		f.after = strings.Fields(f.lines[len(f.lines)-1])[0]
	}
	cmd := exec.Command(f.command[0], slices.Concat(f.command[1:], []string{f.what, f.after})...)
	var err error
	if f.process, err = serviceproc.StartProcess(cmd, slices.Concat([]string{"HOME=" + os.Getenv("HOME")}, f.env, settings)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.process.Kill)
}

// printed returns the lines of all runs of the program. A line that is not complete does not count.
func (f *follower) printed() []string {
	lines := slices.Clone(f.lines)
	if f.process != nil {
		text := f.process.Stdout()
		for line := range strings.Lines(text[:strings.LastIndex(text, "\n")+1]) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// await waits until the program has printed so many suspensions and resumptions. It fails if it prints more.
func (f *follower) await(t *testing.T, want int) {
	t.Helper()
	count := func() (n int) {
		for _, event := range f.seen() {
			if event == "agent.suspended" || event == "agent.resumed" {
				n++
			}
		}
		return n
	}
	if err := f.process.Await(func() bool { return count() >= want }); err != nil || count() > want {
		t.Fatalf("%s %s: %v\n%s", f.name, f.what, err, strings.Join(f.printed(), "\n"))
	}
}

// seen returns the types of the events, in order. It panics at a number that repeats or leaves a gap.
func (f *follower) seen() []string {
	var types []string
	for i, line := range f.printed() {
		words := strings.Fields(line)
		if f.what == "follow" && words[0] != fmt.Sprint(i+1) {
			panic(fmt.Sprintf("%s: event %d is %s", f.name, i+1, line))
		}
		types = append(types, words[1])
	}
	return types
}
