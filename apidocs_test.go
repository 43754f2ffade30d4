package main

import (
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var shownCommand = regexp.MustCompile(`(?s)<pre class="curl"><code[^>]*>(.*?)</code></pre>`)

// TestEveryCommandOfTheAPIPageWorksWhenPasted runs each after the preparation alone.
func TestEveryCommandOfTheAPIPageWorksWhenPasted(t *testing.T) {
	t.Parallel()
	p := start(t, nil).ready(t)
	var commands []string
	_, page := p.get(t, "/docs")
	for _, found := range shownCommand.FindAllStringSubmatch(page, -1) {
		commands = append(commands, html.UnescapeString(found[1]))
	}
	if len(commands) < 30 {
		t.Fatalf("the page shows %d commands", len(commands))
	}
	preparation := strings.Replace(commands[0], "http://127.0.0.1:8080", p.url, 1)
	for _, command := range commands[1:] {
		t.Run(strings.SplitN(command, "\n", 2)[0], func(t *testing.T) {
			t.Parallel()
			run := exec.Command("sh", "-ec", preparation+"\n"+command+` -s -w '\n%{http_code}'`)
			run.Env = []string{"PATH=" + os.Getenv("PATH"), "BOOTSTRAP_TOKEN="}
			output, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			status := string(output[strings.LastIndexByte(string(output), '\n')+1:])
			refuses := strings.Contains(command, "/oauth2/authorize") // everybody
			if refuses != (status == "400") || !refuses && status >= "4" {
				t.Errorf("%s\n%s", command, output)
			}
		})
	}
}
