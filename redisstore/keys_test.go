package redisstore

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
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
		wantEqual(t, test.name, test.key, test.want)
	}
}

func TestFamilyFieldIsEmptyForNoFamily(t *testing.T) {
	t.Parallel()
	wantEqual(t, "no family", kernel.FamilyField(uuid.Nil), "")
	id := uuid.MustParse("41424344-4546-4748-494a-4b4c4d4e4f50")
	wantEqual(t, "a family", kernel.FamilyField(id), "family:ABCDEFGHIJKLMNOP")
}

func TestCellsReach13152SlotsOfACluster(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	first, _, _ := strings.Cut(strings.TrimPrefix(must(realCluster())(t), "redis+cluster://"), ",")
	node := redistest.PlainClient(t, "redis://"+first)
	const cells, batch = 1 << 16, 1 << 13
	reached := map[int64]bool{}
	for cell := 0; cell < cells; cell += batch {
		keys := make([]string, batch)
		for i := range keys {
			keys[i] = kernel.Keys{}.Agent(kernel.IDIn(uint16(cell + i)))
		}
		for _, slot := range redistest.SlotsOf(t, node, keys) {
			reached[slot] = true
		}
	}
	wantEqual(t, "how many slots are reached", len(reached), 13_152)
}

func TestAMemberDecodesToItsID(t *testing.T) {
	t.Parallel()
	agent := uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1")
	id := uuid.MustParse("018f3c2a-b4d5-7e07-91a2-b3c4d5e6c3f1")
	for _, test := range []struct {
		name    string
		members kernel.Members
		want    []byte
	}{
		{"of an organization", kernel.Members{}, id[:]},
		{"of an agent's cell", kernel.OfCell(agent), id[:14]},
	} {
		member := test.members.Of(id)
		if !bytes.Equal(member, test.want) || test.members.Below(id) != string(test.want) {
			t.Errorf("%s: %x, want %x", test.name, member, test.want)
		}
		if back, err := test.members.ID(string(member)); back != id || err != nil {
			t.Errorf("%s: %s, %v, want %s", test.name, back, err, id)
		}
		wantEqual(t, test.name+": what the newest are below", test.members.Below(uuid.Nil), "")
	}
}

func TestAMemberOfAnotherLengthIsAnError(t *testing.T) {
	t.Parallel()
	for _, m := range []kernel.Members{{}, kernel.OfCell(NewRootID())} {
		for n := range 20 {
			_, err := m.ID(string(make([]byte, n)))
			if right := n+len(m.Cell) == 16; errors.Is(err, errReply) == right {
				t.Errorf("%d bytes and %d of a cell: %v", n, len(m.Cell), err)
			}
			r := &reply{Values: []any{[]any{string(make([]byte, n))}}}
			m.IDs(r, 0)
			if errors.Is(r.Err, errReply) != errors.Is(err, errReply) {
				t.Errorf("%d bytes in a reply: %v, want %v", n, r.Err, err)
			}
			size := 16 - len(m.Cell)
			packed := &reply{}
			if ids := m.Packed(packed, string(make([]byte, n))); errors.Is(packed.Err, errReply) != (n%size > 0) || packed.Err == nil && len(ids) != n/size {
				t.Errorf("%d bytes in a text: %v, %v", n, ids, packed.Err)
			}
		}
	}
}
