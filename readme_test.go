package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// topUp makes room in the README's session for what docs/api.md does with it.
const topUp = `curl -s -X PATCH $URL/sessions/$SESSION -H "X-API-Key: $KEY" -H "$JSON" -d '{"max_value_usd":5}'; echo
`

// callsOn returns the calls on a page that goes on where the README ends.
func callsOn(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatalf("%s has no block of calls", page)
	}
	return string(block[1])
}

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
	output, err := exec.Command("sh", "-c", calls+topUp+callsOn(t, "docs/api.md")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	const session = `"value_used_usd":0,"value_held_usd":0,"value_overage_usd":0,"scopes":["read","payments:write"]`
	if !strings.Contains(string(readme), session) {
		t.Errorf("the README's answer 4 lacks %s", session)
	}
	for _, answer := range []string{
		`"action_count":1,"max_actions":2,"value_used_usd":0.37,"max_value_usd":0.5,"value_held_usd":0,"remaining_actions":1,"remaining_value_usd":0.13`,
		`"code":"session_limit_reached"`, `"limit":"max_value_usd"`,
		`"status":"committed","action_type":"refund","value_usd":1.25`,
		`"status":"rolled_back","action_type":"refund","value_usd":1.25`, `"pre_state":{"balance":10}`,
	} {
		if !strings.Contains(string(output), answer) {
			t.Errorf("the calls print %s, not %s", output, answer)
		}
	}
}
