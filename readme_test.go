package main

import (
	"os"
	"strings"
	"testing"
)

// topUp makes room in the README's session for what docs/api.md does with it.
const topUp = `curl -s -X PATCH $URL/sessions/$SESSION -H "X-API-Key: $KEY" -H "$JSON" -d '{"max_value_usd":5}'; echo
`

// calls returns the README's blocks of calls, for the service at the URL.
func calls(t *testing.T, url string) string {
	t.Helper()
	_, blocks, found := strings.Cut(blocksOf(t, "README.md"), "URL=http://127.0.0.1:8080")
	if !found {
		t.Fatal("the README has no block of calls")
	}
	return "URL=" + url + blocks
}

func TestTheReadmesCallsWorkWhenPasted(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const session = `"value_used_usd":0,"value_held_usd":0,"value_overage_usd":0,"value_committed_usd":0,"scopes":["read","payments:write"]`
	if !strings.Contains(string(readme), session) {
		t.Errorf("the README's answer 4 lacks %s", session)
	}
	p := start(t, nil).ready(t)
	inEachShell(t, func(t *testing.T, shell string) {
		shown := `curl -s $URL/sessions/$SESSION -H "X-API-Key: $KEY"; echo` + "\n" // as answer 4, but for what was charged since
		output := paste(t, shell, calls(t, p.url)+shown+topUp+blocksOf(t, "docs/api.md"))
		for _, answer := range []string{
			`"action_count":1,"max_actions":2,"value_used_usd":0.37,"max_value_usd":0.5,"value_held_usd":0,"remaining_actions":1,"remaining_value_usd":0.13`,
			`"value_used_usd":0.37,"value_held_usd":0,"value_overage_usd":0,"value_committed_usd":0.37,"max_lease_seconds":0,"scopes":["read","payments:write"]`,
			`"code":"session_limit_reached"`, `"limit":"max_value_usd"`,
			`"status":"committed","action_type":"refund","value_usd":1.25`,
			`"status":"rolled_back","action_type":"refund","value_usd":1.25`, `"pre_state":{"balance":10}`,
		} {
			if !strings.Contains(output, answer) {
				t.Errorf("the calls print %s, not %s", output, answer)
			}
		}
	})
}

func TestTheCommandsOfThePageOnObservingWorkWhenPasted(t *testing.T) {
	t.Parallel()
	p := start(t, nil).ready(t)
	inEachShell(t, func(t *testing.T, shell string) {
		output := paste(t, shell, calls(t, p.url)+blocksOf(t, "docs/observe.md"))
		for _, answer := range []string{
			`"action_count":2,"max_actions":2,"value_used_usd":0.38`, `"dry_run":true}`, `"would_refuse":"max_value_usd"}`, `"observed_refusals":1`,
			`"max_value_usd":5,"value_used_usd":3,`, `"enforcement":"enforce","observed_refusals":1}`,
		} {
			if !strings.Contains(output, answer) {
				t.Errorf("the commands print %s, not %s", output, answer)
			}
		}
	})
}
