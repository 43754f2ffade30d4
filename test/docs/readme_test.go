package docs

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"remit/test/serviceproc"
)

// topUp makes room in the README's session for what docs/api.md does with it.
const topUp = `curl -s -X PATCH $URL/sessions/$SESSION -H "X-API-Key: $KEY" -H "$JSON" -d '{"max_value_usd":5}'; echo
`

// examples returns the blocks of the README's two examples. The second continues the first.
func examples(t *testing.T, url string) (first, second string) {
	t.Helper()
	_, blocks, found := strings.Cut(blocksOf(t, "README.md"), "URL=http://127.0.0.1:8080")
	first, second, both := strings.Cut(blocks, "WORK=")
	if !found || !both {
		t.Fatal("the README has no block of calls, or no gateway")
	}
	return "URL=" + url + first, "WORK=" + second
}

func TestTheReadmesCallsWorkWhenPasted(t *testing.T) {
	t.Parallel()
	calls, _ := examples(t, serviceproc.Run(t).URL)
	inEachShell(t, func(t *testing.T, shell string) {
		shown := `curl -s $URL/sessions/$SESSION -H "X-API-Key: $KEY"; echo` + "\n" // as answer 4, but for what was charged since
		output := paste(t, shell, calls+shown+topUp+blocksOf(t, "docs/api.md"))
		wantPrinted(t, output,
			`"action_count":1,"max_actions":2,"value_used_usd":0.37,"max_value_usd":0.5,"value_held_usd":0,"remaining_actions":1,"remaining_value_usd":0.13`,
			`"value_used_usd":0.37,"value_held_usd":0,"value_overage_usd":0,"value_committed_usd":0.37,"max_lease_seconds":0,"scopes":["read","payments:write"]`,
			`"code":"session_limit_reached"`, `"limit":"max_value_usd"`,
			`"status":"committed","action_type":"refund","value_usd":1.25`,
			`"status":"rolled_back","action_type":"refund","value_usd":1.25`, `"pre_state":{"balance":10}`,
			`"period":"month","value_reserved_usd":0`, `"value_delegated_usd":5`, `"max_open_sessions":4}`)
	})
}

// own matches what differs in each answer: ids, times, credentials.
var own = regexp.MustCompile(`"(id|[a-z]+_id|api_key|secret|[a-z]+_token|[a-z]+_at)":"[^"]*"`)

func TestTheReadmeShowsWhatIsAnswered(t *testing.T) {
	t.Parallel()
	readme := must(os.ReadFile("README.md"))(t)
	var shown []string
	for _, answer := range regexp.MustCompile(`(?m)^[1-6] 20[01] ({.*})$|^6 403 ({.*})$`).FindAllSubmatch(readme, -1) {
		shown = append(shown, own.ReplaceAllString(string(answer[1])+string(answer[2]), `"$1":""`))
	}
	dir := t.TempDir()
	// Each answer passes field, or is printed; answer 2 passes it twice.
	calls, _ := examples(t, serviceproc.Run(t).URL)
	blocks := strings.Replace(calls, "field() { sed", "field() { tee -a "+dir+"/answers | sed", 1)
	printed := must(exec.CommandContext(t.Context(), "bash", "-c", blocks).Output())(t)
	kept := must(os.ReadFile(filepath.Join(dir, "answers")))(t)
	var answered []string
	for decoder := json.NewDecoder(bytes.NewReader(append(kept, printed...))); ; {
		var answer json.RawMessage
		if err := decoder.Decode(&answer); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in %s%s", err, kept, printed)
		}
		answered = append(answered, own.ReplaceAllString(string(answer), `"$1":""`))
	}
	if answered = slices.Compact(answered); !slices.Equal(shown, answered) {
		t.Errorf("the README shows\n%s\nand the service answers\n%s", strings.Join(shown, "\n"), strings.Join(answered, "\n"))
	}
}

// continued are the pages whose commands continue those of the README, and what they print.
var continued = map[string][]string{
	"docs/observe.md": {
		`"action_count":2,"max_actions":2,"value_used_usd":0.38`, `"dry_run":true}`, `"would_refuse":"max_value_usd"}`, `"observed_refusals":1`,
		`"max_value_usd":5,"value_used_usd":3,`, `"enforcement":"enforce","observed_refusals":1}`,
	},
	"docs/usage.md": {
		`[{"action_type":"llm.call","action_count":1,"value_usd":0.37}]`, `"action_type":"llm.call","action_count":1,"value_usd":0.37}]`,
		"agent_id,action_count,value_usd",
	},
	"docs/suspension.md": {
		`"suspension_reason":"it loops"`, `"code":"agent_suspended"`, `{"suspended":1}`, `{"resumed":1}`, `"name":"scout","scopes":["read"]`,
	},
	"docs/requests.md": {
		`"status":"pending","add_actions":0,"add_value_usd":5,"reason":"12 of 40 invoices are left"`,
		`"status":"approved","add_actions":0,"add_value_usd":5`, `"granted_value_usd":2.5`, `"max_value_usd":3,`,
	},
	"docs/budgets.md": {
		`"value_delegated_usd":12`, `"children":[{`, `"limit":"max_value_usd"`, `"status":"completed"`, `"value_used_usd":1.5`,
		`"period":"month","value_reserved_usd":0,"value_used_usd":0,"remaining_usd":500`, `"code":"budget_exhausted"`,
	},
	"docs/console.md": {
		"on call", "operator", `{"suspended":1}`, `{"resumed":1}`,
	},
	"docs/events.md": {
		`"seq":1,`, `"type":"agent.created"`, "FIRST         1\n", "SIGNED        true\n",
	},
	"docs/webhooks.md": {
		`"url":"https://receiver.example/remit"`, `"types":["session.limit_reached","session.ended"]`, `"secret":"whsec_`,
	},
}

func TestTheCommandsOfThePagesWorkWhenPasted(t *testing.T) {
	t.Parallel()
	calls, _ := examples(t, serviceproc.Run(t).URL)
	remit := remitInPath(t)
	for _, page := range slices.Sorted(maps.Keys(continued)) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			inEachShell(t, func(t *testing.T, shell string) {
				wantPrinted(t, paste(t, shell, "cd $TMPDIR\n"+calls+blocksOf(t, page), remit...), continued[page]...)
			})
		})
	}
}

// remitInPath returns the environment of a shell that finds remit in its PATH.
func remitInPath(t *testing.T) []string {
	t.Helper()
	program := must(serviceproc.Program())(t)
	return []string{"PATH=" + filepath.Dir(program) + string(os.PathListSeparator) + os.Getenv("PATH")}
}

// The program that the first command builds is there already: each shell has a copy, which is up to date.
func TestThePlannerWorksWhenPasted(t *testing.T) {
	t.Parallel()
	promised := shownOn(t, "docs/planner.md", "(?s)```text\n(planned:\n.*?)```")
	service := serviceproc.Run(t)
	built := must(serviceproc.Program())(t)
	inEachShell(t, func(t *testing.T, shell string) {
		work := t.TempDir()
		noError(t, os.Link(built, filepath.Join(work, "remit")))
		printed := paste(t, shell, blocksOf(t, "docs/planner.md"), "REMIT_ADDR="+service.URL, "WORK="+work, "PYTHONDONTWRITEBYTECODE=1")
		wantPrinted(t, printed, promised[1], "1.26/2 USD")
	})
}
