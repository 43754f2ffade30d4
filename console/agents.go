package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
	"remit/client"
)

const agentsPerPage = 50

// agentsPage is the list of agents.
type agentsPage struct {
	paging

	Query, State, Order string
	States              []string
	Shown               []agentRow
	Found, All          int64
	Truncated, Crowded  bool // there are more agents; because memory ran out
	Spent               *spent
	Unspent             string
}

// Known reports whether what each agent spent is known.
func (p agentsPage) Known() bool { return p.Spent != nil && !p.Spent.NoAgents }

func showAgents(v *visit) error {
	all, err := v.fleet()
	if err != nil {
		return err
	}
	page := agentsPage{
		Query: strings.TrimSpace(v.asked("q")), State: v.asked("state"), Order: v.asked("sort"),
		States: []string{statusActive, statusSuspended, statusRevoked},
		All:    int64(all.Agents.size), Truncated: all.Truncated(), Crowded: all.Crowded(), Spent: all.Spent, Unspent: all.Unspent,
	}
	if !slices.Contains(page.States, page.State) {
		page.State = ""
	}
	found := all.find(page.Query, page.State, page.Order)
	page.Found = int64(len(found))
	number := numberOf(v.asked("page"))
	from := min(number*agentsPerPage, len(found))
	page.Shown = rowsOf(found[from:min(from+agentsPerPage, len(found))])
	at := func(n int) string {
		return query(Prefix+"/agents", "q", page.Query, "state", page.State, "sort", page.Order, "page", strconv.Itoa(n))
	}
	if number > 0 {
		page.First, page.Previous = at(0), at(min(number-1, max(len(found)-1, 0)/agentsPerPage))
	}
	if from+agentsPerPage < len(found) {
		page.Next = at(number + 1)
	}
	return v.show("agents", "Agents", page)
}

// numberOf reads the number of a page, 0 for none.
func numberOf(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// createAgent creates an agent and shows its secret once, on its page.
func createAgent(v *visit) error {
	body := map[string]any{"name": v.form("name"), "scopes": words(v.form("scopes"))}
	if text := v.form("description"); text != "" {
		body["description"] = text
	}
	var made client.AgentInfo
	if err := v.api.change(fasthttp.MethodPost, "/v1/agents", v.once(), body, &made); err != nil {
		return err
	}
	v.forgetFleet()
	return v.reveal(agentPath(made.ID), "The agent was created.", "Secret", string(made.Secret))
}

// words splits a text at white space and commas.
func words(text string) []string {
	return append([]string{}, strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\r' || r == '\t' })...)
}

func agentPath(id string) string { return Prefix + "/agents/" + id }
