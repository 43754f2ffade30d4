package redisstore

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

func TestKeysAreSpelledAsDocumented(t *testing.T) {
	t.Parallel()
	k := kernel.Keys{Prefix: "p:"}
	owner := uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1")
	id := uuid.MustParse("018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b")
	for _, test := range []struct{ name, key, want string }{
		{"organization", k.Organization(owner), "p:o:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"organizationAgents", k.OrganizationAgents(owner), "p:oa:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"organizationOpen", k.OrganizationOpen(owner), "p:oo:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"organizationClosed", k.OrganizationClosed(owner), "p:os:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"organizationTransactions", k.OrganizationTransactions(owner), "p:ot:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"suspectAgents", k.SuspectAgents(owner), "p:oad:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"suspectSessions", k.SuspectSessions(owner), "p:ood:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"suspectTransactions", k.SuspectTransactions(owner), "p:otd:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"latestExpiry", k.LatestExpiry(owner), "p:ox:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"agent", k.Agent(owner), "p:a:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"agentSessions", k.AgentSessions(owner), "p:as:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"agentTransactions", k.AgentTransactions(owner), "p:at:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"events", k.Events(owner), "p:ev:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"family, in the agent's cell", k.Family(owner, id), "p:f:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"session, in the agent's cell", k.Session(owner, id), "p:s:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"session, by its own id", k.Session(id, id), "p:s:{0a0b}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"holds, in the agent's cell", k.Holds(owner, id), "p:sh:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"sessionTransactions, in the agent's cell", k.SessionTransactions(owner, id), "p:stx:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"transaction, in the agent's cell", k.Transaction(owner, id), "p:t:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"transaction, by its own id", k.Transaction(id, id), "p:t:{0a0b}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"outcome, in its owner's cell", k.Outcome(owner, "dIgEsT-_"), "p:i:{c3f1}:dIgEsT-_"},
		{"organizationBudget", k.OrganizationBudget(owner), "p:ob:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"reservations", k.Reservations(owner), "p:op:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"reservationLooks", k.ReservationLooks(owner), "p:ol:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"parts, in the agent's cell", k.Parts(owner, id), "p:sp:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"looks, in the agent's cell", k.Looks(owner, id), "p:sc:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"closedChildren, in the agent's cell", k.ClosedChildren(owner, id), "p:sd:{c3f1}:018f3c2a-b4d5-7e07-91a2-b3c4d5e60a0b"},
		{"trustedIssuers", k.TrustedIssuers(owner), "p:oti:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"issuerNames", k.IssuerNames(owner), "p:otn:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
		{"keyRecords", k.KeyRecords(SigningKeys), "p:k:signing"},
		{"keyRecords", k.KeyRecords(TokenKeys), "p:k:token"},
		{"suspended", k.Suspended(), "p:k:suspended"},
		{"bootstrap", k.Bootstrap(), "p:k:bootstrap"},
		{"without a prefix", kernel.Keys{}.Agent(owner), "a:{c3f1}:018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"},
	} {
		if test.key != test.want {
			t.Errorf("%s: %q, want %q", test.name, test.key, test.want)
		}
	}
}

func TestFamilyFieldIsEmptyForNoFamily(t *testing.T) {
	t.Parallel()
	if field := kernel.FamilyField(uuid.Nil); field != "" {
		t.Errorf("no family: %q", field)
	}
	id := uuid.MustParse("41424344-4546-4748-494a-4b4c4d4e4f50")
	if field := kernel.FamilyField(id); field != "family:ABCDEFGHIJKLMNOP" {
		t.Errorf("a family: %q", field)
	}
}

func TestAnAgentsKeysShareOneSlotOfACluster(t *testing.T) {
	t.Parallel()
	node := clusterNode(t)
	k := kernel.Keys{Prefix: "p:"}
	var keys []string
	const perAgent = 12
	for range 500 {
		agent := NewRootID()
		family, session := NewID(agent), NewID(agent)
		keys = append(keys, k.Agent(agent), k.AgentSessions(agent), k.Family(agent, family),
			k.Session(agent, session), k.Session(session, session), k.AgentTransactions(agent), k.Events(agent),
			k.Holds(agent, session), k.SessionTransactions(agent, session), k.Transaction(agent, family),
			k.Transaction(family, family), k.Outcome(agent, "digest"))
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
	k := kernel.Keys{}
	for range 20 {
		o := NewRootID()
		slots := redistest.SlotsOf(t, node,
			[]string{k.Organization(o), k.OrganizationAgents(o), k.OrganizationOpen(o), k.OrganizationClosed(o),
				k.OrganizationTransactions(o), k.Outcome(o, "digest"),
				k.SuspectAgents(o), k.SuspectSessions(o), k.SuspectTransactions(o), k.LatestExpiry(o)})
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
			keys[i] = kernel.Keys{}.Agent(kernel.IDIn(uint16(first + i)))
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
