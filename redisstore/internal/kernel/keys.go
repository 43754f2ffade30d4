package kernel

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Keys alone spells keys. {cell} is the Redis Cluster hash tag: the last 16 bits, in hex, of the id that follows it,
// unless the table says otherwise. Ids in keys are text. Ids in values and members are their 16 bytes; members of 14 bytes
// omit the cell (members.go). Times are ms since 1970, money is micro-USD. Config.Prefix precedes each key.
//
//	o:{cell}:<organization>   hash  name, created, metadata, bytes (include/count_bytes.lua); of its first API key:
//	                                key (SHA-256), previous_key, previous_until, used_key (a key that replaced another, after its
//	                                first use), hint; of each other, at
//	                                most 63: K:<id (16 bytes)> its record, k:<SHA-256> whose it is; of each u:<id>, '' for
//	                                the first, when it was last used (include/read_api_keys.lua)
//	oa:{cell}:<organization>  zset  its agents            ─┐
//	oo:{cell}:<organization>  zset  its open sessions      ├ indexes: all scores 0, members in order of creation;
//	os:{cell}:<organization>  zset  its closed sessions    │ every object has an entry; an entry's object may be gone
//	ot:{cell}:<organization>  zset  its transactions      ─┘
//	                                A session is in oo: from before it is created until a reader has observed that it is
//	                                no longer active, and then in os:.
//	oq:{cell}:<organization>  hash  its usage (note_usage.lua) and quotas: q:<name>
//	ob:{cell}:<organization>  hash  its budget (budgets/include/organization_budget_read.lua)
//	op:{cell}:<organization>  hash  what its root sessions have reserved: session (16 bytes) to part (budgets/include/parts.lua)
//	ol:{cell}:<organization>  zset  these sessions (16 bytes) by when to look at them again; op and ol: TTL ten years
//	oe:{cell}:<organization>  stream  its feed: the events of all its agents (docs/events.md), capped; entry <number>-0 has
//	                                y type, e the event in JSON
//	oeh:{cell}:<organization> hash  n number and h hash (SHA-256, hex) of the last event of oe, f number of the oldest, b bytes of
//	                                all (append_events.lua), t token and u end of the lease of the leader, s when all agents
//	                                were looked at, w number of the event that the webhooks have yet to be woken for,
//	                                d from when something is due that dq does not say yet
//	oec:{cell}:<organization> hash  agent (id as text) to the id of its last event in oe
//	oem:{cell}:<organization> zset  agents (id as text) whose trails may have events that oe has not, by when they were marked
//	oet:{cell}:<organization> zset  of these, those that the leader reads now
//	oei:{cell}:<organization> zset  instances that may change agents, by until when they said so
//	odu:{cell}:<organization> zset  what is due, by time, in chunks (records/include/due.lua)
//	dq:{due}                  zset  organizations (16 bytes) by when something is due in them next, or a claim on them ends (claim_due.lua)
//	dv:{due}                  hash  organization (16 bytes) to the number of its last note (note_due.lua)
//	oeo                       zset  organizations (16 bytes) whose feeds may have work, by how often that was noted
//	ow:{cell}:<organization>  hash  its webhooks: id (16 bytes) to settings, a JSON object
//	owp:{cell}:<organization> hash  how far they have come: id (16 bytes) to progress; h, t and u, who delivers, the number of
//	                                the term, and its end (claim_webhooks.lua)
//	wp:{cell}:<webhook>       zset  its deliveries (id as text) that wait, by when the next attempt is due
//	wf:, wx:{cell}:<webhook>  zset  its last deliveries (id as text) that succeeded, and that were given up, by when
//	wd:{cell}:<webhook>       hash  delivery (id as text) to record, a JSON object. A webhook's cell is the organization's
//	wq                        zset  organizations (16 bytes) by when to look at their webhooks next
//	oti:{cell}:<organization> hash  its trusted issuers: id (16 bytes) to settings, a JSON object
//	otn:{cell}:<organization> hash  their names: the iss of their tokens to id (16 bytes)
//	od:{cell}:<organization>  zset  its deleted agents (16 bytes) by when, in ms since 1970; TTL Config.UsageKept and a day
//	oh                        zset  every organization that stores something: its 16 bytes, by its bytes of memory
//	oad:, ood:, otd:{cell}:<organization>  zset  entries of oa, oo and ot that a reader found without their object, by
//	                                Redis's time of that first observation (drop_dangling.lua); TTL 30 days
//	ox:{cell}:<organization>  string  the latest expiry of a session that was observed expired (close_sessions.lua);
//	                                TTL retention
//	a:{cell}:<agent>          hash  organization, name, scopes, description, metadata, secret (SHA-256), secret_used,
//	                                previous_secret, previous_until, no_secret 1 without any, created, revoked, audiences
//	                                (URIs; - for none, absent for any), jwks (JSON Web Key Set), jwks_uri, keys_version how often
//	                                these two were changed, none for 0, restricted flags that few agents
//	                                have (identity/include/restrict_agent.lua), and limits with what is used of them
//	                                (budgets/include/agent_limits.lua), max_open_sessions, limited_day the day when its limit per day
//	                                was last changed, limits_noted in the audit trail on a day, hold_due a time not after the
//	                                next hold of ah: is due, suspended since and suspension_reason, epoch how
//	                                often all its tokens were revoked, none for 0, family:<family> and bound:<family>:
//	                                revoked, until; TTL after it is deleted
//	as:{cell}:<agent>         zset  its sessions (14 bytes); TTL of the longest-lived
//	at:{cell}:<agent>         zset  its transactions (14 bytes); TTL of the longest-lived
//	ah:{cell}:<agent>         zset  its sessions (id as text) that have holds which count in its day, by a time not after the
//	                                next such hold is due; TTL of the longest-lived
//	ao:{cell}:<agent>         zset  its open sessions (id as text) by expiry, of those created since it has max_open_sessions;
//	                                some that have expired; TTL of the longest-lived
//	uy:{cell}:<agent>         hash  what its sessions used on each day, by action type (include/fold_usage.lua); TTL
//	                                Config.UsageKept and a day after it was folded last, also when the agent is deleted
//	af:{cell}:<agent>         zset  its refresh-token families (14 bytes) by their latest expiry (identity/include/family_score.lua);
//	                                TTL of the longest-lived
//	am:{cell}:<agent>         zset  its tokens without a refresh token that were revoked one by one (14 bytes), by when the marks in a:
//	                                lapse (include/family_score.lua); TTL of the longest-lived
//	ev:{cell}:<agent>         stream  its audit trail, capped at Config.EventsKept (include/audit.lua); TTL as the agent's
//	j:{cell}:<agent>          zset  its assertions that were used (16 bytes of the SHA-256 of each jti), by when no instance takes them
//	                                any more; TTL of the longest-lived, 13 minutes at most
//	pr:{cell}:<agent>:0, :1   hash  its DPoP proofs of the last minutes: 14 bytes of each fingerprint (with_proof.lua); TTL 4 minutes
//	f:{cell}:<family>         hash  g generation, r when it was issued, c created (in ms after the time in its id), sc scopes
//	                                when narrowed, au audience (self is the issuer) when not the issuer alone, k thumbprint of the key it is
//	                                bound to (32 bytes), e the agent's epoch unless 0, p the last generation that was presented
//	                                again, l the last one presented again late; TTL 7 days, at most to its --family-lifetime
//	s:{cell}:<session>        hash  a agent, n actions, ma their limit, v value, mv its limit, h held value, c created
//	                                (in ms after the time in its id), x expires, e ended, sc scopes when not the
//	                                agent's, md metadata, ov overage, lv leased value while a lease is open
//	                                (budgets/include/leases.lua), ml the longest lease in seconds, gb refunds by rollbacks, and max_committed
//	                                (budgets/include/budget.lua), r flags that few sessions have (budgets/include/restrict.lua),
//	                                su suspended since, sr why
//	                                (budgets/include/one_line.lua), oc what limits would have refused while it observed
//	                                (budgets/include/observe.lua),
//	                                q transactions begun, hx a time not after the next due hold
//	                                or expiry of a lease, xu when one of these last expired unsettled, mp max_value_usd_per_action, hd and hd:<transaction> the holds that
//	                                count in the agent's day (budgets/include/counted_holds.lua), w flags
//	                                for what the audit trail has noted (budgets/include/flags.lua), the agent (16 bytes) when the day
//	                                ends on which
//	                                its usage counts, u:<day> what is folded into which day (include/fold_usage.lua), t:<type> what it
//	                                used by action type, and tc how many types (budgets/include/action_types.lua),
//	                                sk the session keys that live (16 bytes each), oldest first, key:<id> when one was created, a
//	                                space and its name;
//	                                TTL lifetime + retention. The
//	                                names are short because there are many sessions.
//	                                One in a tree (docs/budgets.md): pa its parent as text, pg the parent's agent, dp how deep it
//	                                is, from 2 on, dn and dv actions and value delegated to open children, kn and kv what closed ones used, mf when its max_committed
//	                                is its parent's doing and rises with max_value, cl when it
//	                                closed, sh how often its expiry was shortened from above, sa and
//	                                so whether it is suspended from above and also by itself, sv and pv versions of its own
//	                                suspension and of its parent's that it follows; TTL ten years until its usage is
//	                                taken. A tombstone has cl alone; TTL a day.
//	sp:{cell}:<session>       hash  what it has set aside for its children: child (16 bytes) to part (budgets/include/parts.lua)
//	sc:{cell}:<session>       zset  these children (16 bytes) by when to look at them again; sp and sc: TTL ten years
//	sd:{cell}:<session>       zset  its last 1,000 closed children (16 bytes) by when; TTL as the session's
//	sh:{cell}:<session>       zset  its open holds by expiry: transaction (16 bytes) and value; TTL as the session's
//	sl:{cell}:<session>       zset  its open leases by expiry: lease (16 bytes), actions, a space and value; TTL as the session's
//	rq:{cell}:<session>       hash  its requests for more (budgets/include/requests.lua): its pending ones and the 32 decided last;
//	                                TTL as the session's
//	stx:{cell}:<session>      zset  its transactions (14 bytes); TTL as the session's
//	t:{cell}:<transaction>    hash  a agent, s session, q sequence number, st pending, committed or rolled_back, ty action
//	                                type, ut 1 if that counts by itself, else 0, and c once its value counts there, hv value to hold, v charged, ov overage, ir irreversible, b begun, hb 1 if the gateway holds it,
//	                                x expires, cm committed, dv what of it counts in which day of the agent, rb rolled back, re reason, md metadata, ps pre-state,
//	                                po post-state; TTL lifetime + retention, then retention
//	l:{cell}:<lease>          hash  a agent, s session, n actions, v value, b created, x expires, dy the day of the agent that it counts in, at settled, un and uv actions and
//	                                value it was settled with, on and ov what of them is overage, lt 1 when late; ri, rn, rv and rx
//	                                id, actions, value and expiry of its renewal, rr why that was refused; TTL lifetime +
//	                                retention, then settledLeaseKept
//	i:{cell}:<digest>         string  outcome of an idempotency key (idempotent.lua, idempotent_sealed.lua), or the claim on one
//	                                (include/claims.lua); TTL 24 h. The cell is the agent's; for claims by API keys and for
//	                                outcomes about API keys it is the organization's. An outcome ends with the organization's
//	                                16 bytes, a claim by API key with its id as text
//	k:signing, k:token        hash  stored keys: id to created, signs from, ends, material (rotate_key.lua)
//	k:issuer                  string  iss of the instances that are configured with none
//	k:suspended               hash  organization (16 bytes) to since and state (suspend_organization.lua); version, which
//	                                changes with every change
//	k:folding                 string  exists while an instance folds usage, or has lately (FoldUsage); TTL FoldPause
//	k:bootstrap               string  SHA-256 of the bootstrap token that the first instance made
//
// Package redisclient spells three more keys with this prefix, which store no data of Remit: r:{cell}, w:{cell} and n:none.
type Keys struct{ Prefix string }

func (k Keys) Organization(id uuid.UUID) string       { return k.Key("o:", CellOf(id), id) }
func (k Keys) OrganizationAgents(id uuid.UUID) string { return k.Key("oa:", CellOf(id), id) }
func (k Keys) OrganizationOpen(id uuid.UUID) string   { return k.Key("oo:", CellOf(id), id) }
func (k Keys) OrganizationClosed(id uuid.UUID) string { return k.Key("os:", CellOf(id), id) }
func (k Keys) OrganizationTransactions(id uuid.UUID) string {
	return k.Key("ot:", CellOf(id), id)
}
func (k Keys) OrganizationUsage(id uuid.UUID) string  { return k.Key("oq:", CellOf(id), id) }
func (k Keys) OrganizationBudget(id uuid.UUID) string { return k.Key("ob:", CellOf(id), id) }
func (k Keys) Reservations(id uuid.UUID) string       { return k.Key("op:", CellOf(id), id) }
func (k Keys) ReservationLooks(id uuid.UUID) string   { return k.Key("ol:", CellOf(id), id) }
func (k Keys) Feed(id uuid.UUID) string               { return k.Key("oe:", CellOf(id), id) }
func (k Keys) FeedHead(id uuid.UUID) string           { return k.Key("oeh:", CellOf(id), id) }
func (k Keys) FeedCursors(id uuid.UUID) string        { return k.Key("oec:", CellOf(id), id) }
func (k Keys) FeedMarked(id uuid.UUID) string         { return k.Key("oem:", CellOf(id), id) }
func (k Keys) FeedTaken(id uuid.UUID) string          { return k.Key("oet:", CellOf(id), id) }
func (k Keys) FeedInstances(id uuid.UUID) string      { return k.Key("oei:", CellOf(id), id) }
func (k Keys) Feeds() string                          { return k.Prefix + "oeo" }
func (k Keys) Due(id uuid.UUID) string                { return k.Key("odu:", CellOf(id), id) }
func (k Keys) DueQueue() string                       { return k.Prefix + "dq:{due}" }
func (k Keys) DueVersions() string                    { return k.Prefix + "dv:{due}" }
func (k Keys) Webhooks(id uuid.UUID) string           { return k.Key("ow:", CellOf(id), id) }
func (k Keys) WebhookProgress(id uuid.UUID) string    { return k.Key("owp:", CellOf(id), id) }
func (k Keys) WebhookQueue() string                   { return k.Prefix + "wq" }
func (k Keys) PendingDeliveries(organization, id uuid.UUID) string {
	return k.Key("wp:", CellOf(organization), id)
}
func (k Keys) FinishedDeliveries(organization, id uuid.UUID) string {
	return k.Key("wf:", CellOf(organization), id)
}
func (k Keys) DeadDeliveries(organization, id uuid.UUID) string {
	return k.Key("wx:", CellOf(organization), id)
}
func (k Keys) Deliveries(organization, id uuid.UUID) string {
	return k.Key("wd:", CellOf(organization), id)
}
func (k Keys) TrustedIssuers(id uuid.UUID) string      { return k.Key("oti:", CellOf(id), id) }
func (k Keys) IssuerNames(id uuid.UUID) string         { return k.Key("otn:", CellOf(id), id) }
func (k Keys) DeletedAgents(id uuid.UUID) string       { return k.Key("od:", CellOf(id), id) }
func (k Keys) Holdings() string                        { return k.Prefix + "oh" }
func (k Keys) SuspectAgents(id uuid.UUID) string       { return k.Key("oad:", CellOf(id), id) }
func (k Keys) SuspectSessions(id uuid.UUID) string     { return k.Key("ood:", CellOf(id), id) }
func (k Keys) SuspectTransactions(id uuid.UUID) string { return k.Key("otd:", CellOf(id), id) }
func (k Keys) LatestExpiry(id uuid.UUID) string        { return k.Key("ox:", CellOf(id), id) }
func (k Keys) Agent(id uuid.UUID) string               { return k.Key("a:", CellOf(id), id) }
func (k Keys) AgentSessions(id uuid.UUID) string       { return k.Key("as:", CellOf(id), id) }
func (k Keys) AgentTransactions(id uuid.UUID) string   { return k.Key("at:", CellOf(id), id) }
func (k Keys) UsageDays(id uuid.UUID) string           { return k.Key("uy:", CellOf(id), id) }
func (k Keys) AgentFamilies(id uuid.UUID) string       { return k.Key("af:", CellOf(id), id) }
func (k Keys) TokenMarks(id uuid.UUID) string          { return k.Key("am:", CellOf(id), id) }
func (k Keys) AgentHolds(id uuid.UUID) string          { return k.Key("ah:", CellOf(id), id) }
func (k Keys) AgentOpen(id uuid.UUID) string           { return k.Key("ao:", CellOf(id), id) }
func (k Keys) Assertions(id uuid.UUID) string          { return k.Key("j:", CellOf(id), id) }
func (k Keys) Proofs(id uuid.UUID, period byte) string {
	return k.Key("pr:", CellOf(id), id) + ":" + string('0'+period)
}
func (k Keys) Events(agent uuid.UUID) string { return k.Key("ev:", CellOf(agent), agent) }

// AgentOfEvents is the inverse of events; uuid.Nil for any other key.
func (k Keys) AgentOfEvents(key string) uuid.UUID {
	name, ours := strings.CutPrefix(key, k.Prefix)
	if !ours || !strings.HasPrefix(name, "ev:{") {
		return uuid.Nil
	}
	agent, err := uuid.Parse(name[strings.IndexByte(name, '}')+2:])
	if err != nil {
		return uuid.Nil
	}
	return agent
}

// Family, session, holds, transaction and lease take their cell from the agent. The agent's own ids have the same cell. Another
// agent's id gives a key that does not exist, in the slot where the caller's own credential is checked.
func (k Keys) Family(agent, id uuid.UUID) string      { return k.Key("f:", CellOf(agent), id) }
func (k Keys) Session(agent, id uuid.UUID) string     { return k.Key("s:", CellOf(agent), id) }
func (k Keys) Holds(agent, session uuid.UUID) string  { return k.Key("sh:", CellOf(agent), session) }
func (k Keys) Transaction(agent, id uuid.UUID) string { return k.Key("t:", CellOf(agent), id) }
func (k Keys) Leases(agent, session uuid.UUID) string {
	return k.Key("sl:", CellOf(agent), session)
}
func (k Keys) SessionRequests(agent, session uuid.UUID) string {
	return k.Key("rq:", CellOf(agent), session)
}
func (k Keys) Lease(agent, id uuid.UUID) string      { return k.Key("l:", CellOf(agent), id) }
func (k Keys) Parts(agent, session uuid.UUID) string { return k.Key("sp:", CellOf(agent), session) }
func (k Keys) Looks(agent, session uuid.UUID) string { return k.Key("sc:", CellOf(agent), session) }
func (k Keys) ClosedChildren(agent, session uuid.UUID) string {
	return k.Key("sd:", CellOf(agent), session)
}
func (k Keys) SessionTransactions(agent, session uuid.UUID) string {
	return k.Key("stx:", CellOf(agent), session)
}

// Outcome is the key of an idempotency key's outcome, in the cell of the agent or the organization.
func (k Keys) Outcome(owner uuid.UUID, digest string) string {
	return k.outcomeIn(CellOf(owner), digest)
}

func (k Keys) outcomeIn(cell uint16, digest string) string {
	return k.Prefix + "i:{" + cellText(cell) + "}:" + digest
}

func (k Keys) KeyRecords(kind KeyKind) string { return k.Prefix + "k:" + string(kind) }
func (k Keys) Issuer() string                 { return k.Prefix + "k:issuer" }
func (k Keys) Suspended() string              { return k.Prefix + "k:suspended" }
func (k Keys) Folding() string                { return k.Prefix + "k:folding" }
func (k Keys) Bootstrap() string              { return k.Prefix + "k:bootstrap" }

// Sessions returns the keys of many sessions, all in one piece of memory.
func (k Keys) Sessions(ids []uuid.UUID) []string {
	keys, text, start := make([]string, len(ids)), make([]byte, 0, len(ids)*(len(k.Prefix)+len("s:{c3f1}:")+StoredEnd)), 0
	ends := make([]int, len(ids))
	for i, id := range ids {
		text = k.append(text, "s:", CellOf(id), id)
		ends[i] = len(text)
	}
	whole := string(text)
	for i, end := range ends {
		keys[i], start = whole[start:end], end
	}
	return keys
}

func (k Keys) Key(kind string, cell uint16, id uuid.UUID) string {
	return string(k.append(make([]byte, 0, 80), kind, cell, id)) // on the stack, unless the prefix is long
}

func (k Keys) append(text []byte, kind string, cell uint16, id uuid.UUID) []byte {
	text = append(append(append(text, k.Prefix...), kind...), '{')
	text = append(appendCell(text, cell), "}:"...)
	return AppendID(text, id)
}

func appendCell(text []byte, cell uint16) []byte {
	return hex.AppendEncode(text, []byte{byte(cell >> 8), byte(cell)})
}

// parseCell is the inverse of cellText.
func parseCell(text string) (cell uint16, valid bool) {
	number, err := strconv.ParseUint(text, 16, 16)
	return uint16(number), err == nil && len(text) == 4
}

func cellText(cell uint16) string { return string(appendCell(nil, cell)) }

// FamilyField is the field of an agent's hash that records a family as revoked, and the form in which scripts take the family of
// an access token that is bound to no key. It is "" for no family, when an API key calls.
func FamilyField(family uuid.UUID) string {
	if family == uuid.Nil {
		return ""
	}
	return "family:" + string(family[:])
}

// BoundField is FamilyField for an access token that is bound to a key; see lua/block/refuse_unbound.lua.
func BoundField(family uuid.UUID) string { return "bound:" + string(family[:]) }

// SessionKeyField is FamilyField for a session key, and the field of its session's hash while it lives; see
// lua/block/refuse_session_key.lua.
func SessionKeyField(id uuid.UUID) string { return "key:" + string(id[:]) }

// KeyKind is the use of a key.
type KeyKind string

// The kinds of keys that Redis stores unless the service reads them from files.
const (
	SigningKeys KeyKind = "signing" // of access tokens
	TokenKeys   KeyKind = "token"   // of refresh tokens; see --token-key
)
