package redisstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// recordOverhead is the memory of a record of a request for more beyond its text. Scripts count it too.
const recordOverhead = 120

// The words of a record before its texts; budgets/include/requests.lua has its form.
const (
	recordStatus = iota
	recordCreated
	recordActions
	recordValue
	recordDecided
	recordGrantedActions
	recordGrantedValue
	recordReason // its length in bytes
	recordTexts  // the reason, and behind it the comment
)

// readRecord reads a request for more from its record.
func readRecord(id uuid.UUID, record string) (SessionRequest, error) {
	words := strings.SplitN(record, " ", recordTexts+1)
	if len(words) <= recordTexts {
		return SessionRequest{}, fmt.Errorf("%w: %q is no request", errReply, record)
	}
	r := &reply{}
	texts, reason := words[recordTexts], r.Parse(words[recordReason])
	if reason > int64(len(texts)) {
		return SessionRequest{}, fmt.Errorf("%w: %q is no request", errReply, record)
	}
	v := SessionRequest{
		ID: id, Status: Status(words[recordStatus]), Created: r.ParseTime(words[recordCreated]),
		AddActions: r.Parse(words[recordActions]), AddValue: money.MicroUSD(r.Parse(words[recordValue])),
		Reason: texts[:max(reason, 0)], Comment: texts[max(reason, 0):], Decided: r.ParseTimeOrZero(words[recordDecided]),
		GrantedActions: r.Parse(words[recordGrantedActions]), GrantedValue: money.MicroUSD(r.Parse(words[recordGrantedValue])),
	}
	return v, r.Err
}

// requestedOf is what the status of a session's requests depends on.
type requestedOf struct {
	session, agent uuid.UUID
	now, expires   time.Time
	active         bool // the session
}

// requestedFrom reads it from the beginning of a reply: now, e, revoked, x.
func requestedFrom(r *reply, session, agent uuid.UUID) (requestedOf, error) {
	of := requestedOf{session: session, agent: agent, now: r.Time(0), expires: r.Time(3)}
	of.active = statusAt(of.now, lifeEvents{ended: r.TimeOrZero(1), revoked: r.TimeOrZero(2), expires: of.expires}) == Active
	return of, r.Err
}

// read reads a request of the session.
func (of requestedOf) read(id uuid.UUID, record string) (SessionRequest, error) {
	v, err := readRecord(id, record)
	v.Session, v.Agent, v.Remaining = of.session, of.agent, of.expires.Sub(of.now)
	if v.Status == Pending && !of.active {
		v.Status = Lapsed
	}
	return v, err
}

// readAll reads the requests of the session from the names and values of their hash, newest first.
func (of requestedOf) readAll(fields *reply) ([]SessionRequest, error) {
	var all []SessionRequest
	for i := 0; i+1 < len(fields.Values); i += 2 {
		name := fields.Text(i)
		if len(name) != len(uuid.Nil) { // not a record
			continue
		}
		v, err := of.read(fields.ID(i), fields.Text(i+1))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b SessionRequest) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID.String(), a.ID.String()))
	})
	return all, fields.Err
}

// requestDemand is the demand of a request for more. How long the request stays is known only afterwards.
func (s *Store) requestDemand(act kernel.Actor, n NewSessionRequest) kernel.Demand {
	return kernel.Demand{
		Organization: act.Organization, Agent: act.Agent, Resource: kernel.NoResource, Events: kernel.EventSize,
		Bytes: recordOverhead + int64(len(n.Reason)), Retained: s.config.Retention,
	}
}
