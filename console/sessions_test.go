package console

import (
	"slices"
	"strings"
	"testing"

	"remit/client"
)

func TestASessionShowsExactlyWhatItUsedHeldAndDelegated(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	child := w.newSession(ids["agent"], map[string]any{"parent_session_id": ids["session"], "max_actions": 3, "max_value_usd": 4.000001})
	page := b.get(ids.path(session)).want(200)
	page.says("2 of 10", "$1.25 of $20.00", "held $2.00", "delegated $4.000001", "delegated 3", "scout", "llm.call", "more is needed", "transaction.begun")
	wantEqual(t, "the tree leads to the child", slices.Contains(page.links(), sessions+"/"+child), true)
	b.get(sessions+"/"+child).says("a part of", "0 of 3")
	b.get(sessions).says("$4.000001", "held $2.00", "2 of 10")
}

func TestSessionsAreFiltered(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	other := w.newAgent("other")
	var made []string
	for range 26 {
		made = append(made, w.newSession(other, nil))
	}
	w.asAdmin("POST", "/v1/sessions/"+made[0]+"/end", map[string]any{})
	for path, want := range map[string]int{
		sessions: 25, sessions + "?status=completed": 1, sessions + "?status=revoked": 0,
		sessions + "?agent=" + ids["agent"]: 1, sessions + "?status=all&agent=" + other: 25,
	} {
		wantEqual(t, path, len(b.get(path).want(200).rows("Session")), want)
	}
}

func TestALargeTreeIsCut(t *testing.T) {
	t.Parallel()
	deep := func(n int) client.SessionTree { return client.SessionTree{Children: make([]client.SessionTree, n)} }
	tree := client.SessionTree{Children: []client.SessionTree{deep(150), deep(150)}}
	cut(&tree, new(int))
	shown := 2 + len(tree.Children[0].Children) + len(tree.Children[1].Children)
	if shown != shownInTree || !tree.Children[1].ChildrenTruncated || tree.Children[0].ChildrenTruncated {
		t.Errorf("%d of 302 are shown", shown)
	}
}

func TestALongStateIsCutInTheListAndWholeOnItsPage(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	long := strings.Repeat("a", 60_000)
	ids := w.sampleOf(texts{"scout", "more", "llm.call", long, "m"})
	got := b.get(ids.path(session)).want(200).says("aaa…")
	wantAtMost(t, "the bytes of the session's page", len(got.text), 60_000)
	b.get(Prefix+"/transactions/"+ids["transaction"]).want(200).says(long, "llm.call", "$2.00 held")
}
