package redisstore

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/test/redistest"
)

func TestKeysAreSpelledAsDocumented(t *testing.T) {
	t.Parallel()
	k := keyspace{"p:"}
	owner := uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1")
	id := uuid.MustParse("018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b")
	for _, test := range []struct{ name, key, want string }{
		{"organization", k.organization(owner), "p:o:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"organizationAgents", k.organizationAgents(owner), "p:oa:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"organizationOpen", k.organizationOpen(owner), "p:oo:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"organizationClosed", k.organizationClosed(owner), "p:os:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"organizationTransactions", k.organizationTransactions(owner), "p:ot:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"suspectAgents", k.suspectAgents(owner), "p:oad:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"suspectSessions", k.suspectSessions(owner), "p:ood:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"suspectTransactions", k.suspectTransactions(owner), "p:otd:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"latestExpiry", k.latestExpiry(owner), "p:ox:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"agent", k.agent(owner), "p:a:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"agentSessions", k.agentSessions(owner), "p:as:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"agentTransactions", k.agentTransactions(owner), "p:at:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"events", k.events(owner), "p:ev:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"family, in the agent's cell", k.family(owner, id), "p:f:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"session, in the agent's cell", k.session(owner, id), "p:s:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"session, by its own id", k.session(id, id), "p:s:{0a0b}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"holds, in the agent's cell", k.holds(owner, id), "p:sh:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"sessionTransactions, in the agent's cell", k.sessionTransactions(owner, id), "p:stx:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"transaction, in the agent's cell", k.transaction(owner, id), "p:t:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"transaction, by its own id", k.transaction(id, id), "p:t:{0a0b}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"outcome, in its owner's cell", k.outcome(owner, "dIgEsT-_"), "p:i:{c3f1}:dIgEsT-_"},
		{"organizationBudget", k.organizationBudget(owner), "p:ob:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"reservations", k.reservations(owner), "p:op:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"reservationLooks", k.reservationLooks(owner), "p:ol:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"parts, in the agent's cell", k.parts(owner, id), "p:sp:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"looks, in the agent's cell", k.looks(owner, id), "p:sc:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"closedChildren, in the agent's cell", k.closedChildren(owner, id), "p:sd:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"trustedIssuers", k.trustedIssuers(owner), "p:oti:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"issuerNames", k.issuerNames(owner), "p:otn:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"keyRecords", k.keyRecords(SigningKeys), "p:k:signing"},
		{"keyRecords", k.keyRecords(TokenKeys), "p:k:token"},
		{"suspended", k.suspended(), "p:k:suspended"},
		{"bootstrap", k.bootstrap(), "p:k:bootstrap"},
		{"without a prefix", keyspace{}.agent(owner), "a:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
	} {
		if test.key != test.want {
			t.Errorf("%s: %q, want %q", test.name, test.key, test.want)
		}
	}
}

func TestFamilyFieldIsEmptyForNoFamily(t *testing.T) {
	t.Parallel()
	if field := familyField(uuid.Nil); field != "" {
		t.Errorf("no family: %q", field)
	}
	id := uuid.MustParse("41424344-4546-4748-494a-4b4c4d4e4f50")
	if field := familyField(id); field != "family:ABCDEFGHIJKLMNOP" {
		t.Errorf("a family: %q", field)
	}
}

func TestAnAgentsKeysShareOneSlotOfACluster(t *testing.T) {
	t.Parallel()
	node := clusterNode(t)
	k := keyspace{"p:"}
	var keys []string
	const perAgent = 12
	for range 500 {
		agent := NewRootID()
		family, session := NewID(agent), NewID(agent)
		keys = append(keys, k.agent(agent), k.agentSessions(agent), k.family(agent, family),
			k.session(agent, session), k.session(session, session), k.agentTransactions(agent), k.events(agent),
			k.holds(agent, session), k.sessionTransactions(agent, session), k.transaction(agent, family),
			k.transaction(family, family), k.outcome(agent, "digest"))
	}
	slots := redistest.SlotsOf(t, node, keys)
	for i := 0; i < len(keys); i += perAgent {
		for j := i + 1; j < i+perAgent; j++ {
			if slots[j] != slots[i] {
				t.Fatalf("slot %d: %s; slot %d: %s", slots[i], keys[i], slots[j], keys[j])
			}
		}
	}
}

func TestAnOrganizationsIndexesShareItsSlot(t *testing.T) {
	t.Parallel()
	node := clusterNode(t)
	k := keyspace{}
	for range 20 {
		o := NewRootID()
		slots := redistest.SlotsOf(t, node,
			[]string{k.organization(o), k.organizationAgents(o), k.organizationOpen(o), k.organizationClosed(o),
				k.organizationTransactions(o), k.outcome(o, "digest"),
				k.suspectAgents(o), k.suspectSessions(o), k.suspectTransactions(o), k.latestExpiry(o)})
		for _, slot := range slots {
			if slot != slots[0] {
				t.Fatalf("organization %s is spread over slots %v", o, slots)
			}
		}
	}
}

func TestCellsReach13152SlotsOfACluster(t *testing.T) {
	t.Parallel()
	node := clusterNode(t)
	const cells, batch = 1 << 16, 1 << 13
	reached := map[int64]bool{}
	for first := 0; first < cells; first += batch {
		keys := make([]string, batch)
		for i := range keys {
			keys[i] = keyspace{}.agent(newID(uint16(first + i)))
		}
		for _, slot := range redistest.SlotsOf(t, node, keys) {
			reached[slot] = true
		}
	}
	if len(reached) != 13_152 {
		t.Errorf("%d slots", len(reached))
	}
}

// clusterNode returns a plain client of one node of the cluster.
func clusterNode(t *testing.T) *redis.Client {
	t.Helper()
	redistest.SkipIfShort(t)
	url := must(realCluster())(t)
	first, _, _ := strings.Cut(strings.TrimPrefix(url, "redis+cluster://"), ",")
	node := redis.NewClient(&redis.Options{Addr: first})
	t.Cleanup(func() { _ = node.Close() })
	return node
}
