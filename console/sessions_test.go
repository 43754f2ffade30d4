package console

import (
	"slices"
	"strings"
	"testing"

	"remit/client"
)

func TestASessionShowsExactlyWhatItUsedHeldAndDelegated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	child := w.newSession(ids["agent"], map[string]any{"parent_session_id": ids["session"], "max_actions": 3, "max_value_usd": 4.000001})
	page := w.as(t, viewer).get(sessions + "/" + ids["session"]).want(200)
	page.says("2 of 10", "$1.25 of $20.00", "held $2.00", "delegated $4.000001", "delegated 3", "scout", "llm.call", "more is needed", "transaction.begun")
	if !slices.Contains(page.links(), sessions+"/"+child) {
		t.Error("the tree does not lead to the child")
	}
	w.as(t, viewer).get(sessions+"/"+child).says("a part of", "0 of 3")
	w.as(t, viewer).get(sessions).says("$4.000001", "held $2.00", "2 of 10")
}

func TestSessionsAreFiltered(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	agent := ids["agent"]
	other := w.newAgent("other")
	var made []string
	for range 26 {
		made = append(made, w.newSession(other, nil))
	}
	w.asAdmin("POST", "/v1/sessions/"+made[0]+"/end", map[string]any{})
	count := func(a *answer) (n int) {
		for row := range a.want(200).elements("tr") {
			if attribute(row, "data-object") != "" {
				n++
			}
		}
		return n
	}
	for path, want := range map[string]int{
		sessions: 25, sessions + "?status=completed": 1, sessions + "?status=revoked": 0, sessions + "?agent=" + agent: 1, sessions + "?status=all&agent=" + other: 25,
	} {
		if got := count(b.get(path)); got != want {
			t.Errorf("%s has %d sessions, want %d", path, got, want)
		}
	}
}

func TestTheSameTopUpTwiceRaisesOnce(t *testing.T) {
	t.Parallel()
	_, b, ids := sampled(t, operator)
	path := sessions + "/" + ids["session"]
	b.send(b.get(path), path+"/top-up").says("The limits were not raised", "Say what to add")
	form := b.get(path).form(path + "/top-up")
	form.Set("add_actions", "5")
	for range 2 {
		b.follow(b.ask("POST", path+"/top-up", form)).says("2 of 15")
	}
}

func TestALargeTreeIsCut(t *testing.T) {
	t.Parallel()
	deep := func(n int) client.SessionTree {
		var tree client.SessionTree
		for range n {
			tree.Children = append(tree.Children, client.SessionTree{})
		}
		return tree
	}
	tree := deep(2)
	tree.Children[0], tree.Children[1] = deep(150), deep(150)
	cut(&tree, new(int))
	shown := 2 + len(tree.Children[0].Children) + len(tree.Children[1].Children)
	if shown != shownInTree || !tree.Children[1].ChildrenTruncated || tree.Children[0].ChildrenTruncated {
		t.Errorf("%d of 302 are shown", shown)
	}
}

func TestALongStateIsCutInTheListAndWholeOnItsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	long := strings.Repeat("a", 60_000)
	ids := w.sampleOf(texts{"scout", "more", "llm.call", long, "m"})
	b := w.as(t, viewer)
	if got := b.get(sessions + "/" + ids["session"]).want(200); len(got.text) > 60_000 || !strings.Contains(got.text, "aaa…") {
		t.Errorf("the session's page has %d bytes", len(got.text))
	}
	b.get(Prefix+"/transactions/"+ids["transaction"]).want(200).says(long, "llm.call", "$2.00 held")
}

func TestALongIntegerInAStateKeepsItsDigits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"n":12345678901234567890}`: "12345678901234567890", `{"n":0.1000}`: "0.1000", ``: "{}", `{"a":"<b>"}`: "<b>",
	} {
		if got := indented([]byte(text)); !strings.Contains(got, want) {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
}
