package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestTheReadmesCallsWorkWhenPasted(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(URL=.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no block of calls")
	}
	p := start(t, nil).ready(t)
	calls := strings.Replace(string(block[1]), "http://127.0.0.1:8080", p.url, 1)
	output, err := exec.Command("sh", "-c", calls).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, answer := range []string{
		`"action_count":1,"max_actions":2,"value_used_usd":0.37,"max_value_usd":0.5,"value_held_usd":0,"remaining_actions":1,"remaining_value_usd":0.13`,
		`"code":"session_limit_reached"`, `"limit":"max_value_usd"`,
	} {
		if !strings.Contains(string(output), answer) {
			t.Errorf("the calls print %s, not %s", output, answer)
		}
	}
}
