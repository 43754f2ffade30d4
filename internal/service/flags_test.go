package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// twinsOf returns the environment twins of all flags of a command and of those below it.
func twinsOf(node *kong.Node) (twins []string) {
	for _, flag := range node.Flags {
		twins = append(twins, flag.Envs...)
	}
	for _, child := range node.Children {
		twins = append(twins, twinsOf(child)...)
	}
	return twins
}

// The service and its clients often share an environment. A setting of one must not affect the other. The bootstrap token is
// the same file for both.
func TestClientCommandsShareNoVariableWithTheService(t *testing.T) {
	t.Parallel()
	parser := must(kong.New(new(commands), kong.Name("remit"), kong.DefaultEnvars("REMIT")))(t)
	var ofService, ofClient []string
	for _, command := range parser.Model.Children {
		switch command.Name {
		case "serve", "gateway", "healthcheck", "keys", "organizations":
			ofService = append(ofService, twinsOf(command)...)
		default:
			ofClient = append(ofClient, twinsOf(command)...)
		}
	}
	slices.Sort(ofClient)
	ofClient = slices.Compact(ofClient)
	want := []string{"REMIT_ADDR", "REMIT_AGENT", "REMIT_API_KEY", "REMIT_ASSERTION_FILE", "REMIT_BOOTSTRAP_TOKEN", "REMIT_DPOP",
		"REMIT_KEY_FILE", "REMIT_RESOURCE", "REMIT_SECRET", "REMIT_SESSION", "REMIT_SESSION_KEY"}
	if !slices.Equal(ofClient, want) {
		t.Errorf("the client's commands read %q, want %q", ofClient, want)
	}
	for _, twin := range ofClient {
		if twin != "REMIT_BOOTSTRAP_TOKEN" && slices.Contains(ofService, twin) {
			t.Errorf("%s means one thing to the service and another to its clients", twin)
		}
	}
}

// A command line with flags alone starts the service, and a failure is one line.
func TestTheFlagsOfServeNeedNoCommand(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"REMIT_ADDR=http://nowhere.invalid", "REMIT_API_KEY=rmk_x", "REMIT_AGENT=a", "REMIT_SECRET=@/none"},
		"--listen", "127.0.0.1:0", "--log-level", "debug").ready(t)
	port := p.url[strings.LastIndex(p.url, ":")+1:]
	taken := start(t, nil, "serve", "--listen", "127.0.0.1:"+port)
	if err := taken.Wait(); err == nil || !strings.HasPrefix(taken.Stderr(), "remit: cannot listen on 127.0.0.1:"+port) {
		t.Errorf("%v: %s", err, taken.Stderr())
	}
}
