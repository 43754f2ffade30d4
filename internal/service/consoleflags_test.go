package service

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func TestTheConsoleIsOnWhereOnlyThisMachineReachesIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		console, own, listens string
		on                    bool
	}{
		{"", "", "127.0.0.1:80", true}, {"", "", "[::1]:80", true}, {"", "", "0.0.0.0:80", false}, {"", "", "192.0.2.1:80", false},
		{"on", "", "0.0.0.0:80", true}, {"off", "", "127.0.0.1:80", false}, {"", "127.0.0.1:81", "0.0.0.0:80", true},
	} {
		address := must(net.ResolveTCPAddr("tcp", test.listens))(t)
		flags := consoleFlags{Console: test.console, ConsoleListen: test.own}
		if got := flags.isOn(address); got != test.on || flags.check() != nil {
			t.Errorf("%+v: on %t, %v", test, got, flags.check())
		}
	}
	if (consoleFlags{Console: "off", ConsoleListen: "127.0.0.1:81"}).check() == nil {
		t.Error("a listener for a console that is off is accepted")
	}
}

func TestTheConsolesAddressIsPrinted(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "--console-listen", "127.0.0.1:0").ready(t)
	printed := regexp.MustCompile(`msg=console url=(http://127\.0\.0\.1:\d+)/console\n`)
	becomes(t, "the address is printed", func() bool { return printed.MatchString(p.Stderr()) })
	own := printed.FindStringSubmatch(p.Stderr())[1]
	off := start(t, nil, "--console", "off").ready(t)
	for address, want := range map[string]struct {
		status int
		says   string
	}{
		own + "/console":     {http.StatusOK, "Sign in"},
		own + "/healthz":     {http.StatusNotFound, "not_found"},
		p.url + "/console":   {http.StatusNotFound, "the console is not served at this address: --console and --console-listen say"},
		off.url + "/console": {http.StatusNotFound, "the console is not served at this address: --console and --console-listen say"},
		off.url + "/consol":  {http.StatusNotFound, "there is nothing at this path"},
	} {
		answered := must(http.Get(address))(t)
		body, _ := io.ReadAll(answered.Body)
		_ = answered.Body.Close()
		if answered.StatusCode != want.status || !strings.Contains(string(body), want.says) {
			t.Errorf("%s: %d %s, want %d with %q", address, answered.StatusCode, body, want.status, want.says)
		}
	}
}
