package redisstore

import (
	"errors"
	"slices"
)

var (
	enterFeed    = newScript("records/enter_feed", bestEffort)
	noteFeed     = newScript("records/note_feed", bestEffort)
	dropFeed     = newScript("records/drop_feed", bestEffort)
	markAgents   = newScript("records/mark_agents", bestEffort)
	leadFeed     = newScript("records/lead_feed", bestEffort)
	takeAgents   = newScript("records/take_agents", bestEffort)
	finishLook   = newScript("records/finish_look", bestEffort)
	appendEvents = newScript("records/append_events", writes)
	trimTrail    = newScript("records/trim_trail", bestEffort)
	readFeed     = newScript("records/read_feed", reads)
)

// errFeedLost means that another instance leads the feed, or has led it since.
var errFeedLost = errors.New("another instance leads the feed")

// recordingIf limits which calls of the operation may have written into an audit trail.
func (k keyedScript) recordingIf(may func(*reply, error) bool) keyedScript {
	k.script.Watched(may)
	return k
}

// writeNothing are refusals of which no script writes an event, and which strangers can cause.
var writeNothing = []error{
	ErrUnknownAgent, ErrInvalidCredentials, ErrInvalidToken, ErrInvalidAPIKey, ErrInvalidRefreshToken, ErrUnknownFamily,
	ErrUnknownSession, ErrUnknownTransaction, ErrUnknownLease, ErrUnknownRequest, errHoldsDue, errAgentHoldsDue,
}

// mayRecord says whether a call that ended so may have written an event.
func mayRecord(_ *reply, err error) bool { return !slices.Contains(writeNothing, err) }

// chargeMayRecord is mayRecord for a charge, most of which write none.
func chargeMayRecord(r *reply, err error) bool {
	return err != nil && mayRecord(r, err) || err == nil && nearLimit(r, 0)
}

// nearLimit says whether the usage at i is near a limit, as charge_session.lua has it. What a session in a tree has delegated
// counts too, but is not in the usage, so any of these is.
func nearLimit(r *reply, i int) bool {
	if r.Has(i+usageBudget) && r.Optional(i+usageBudget) != "" || r.Has(i+usageWouldRefuse) {
		return true
	}
	value, most := moneyAt(r, i+usageValue)+moneyAt(r, i+usageHeld), moneyAt(r, i+usageMaxValue)
	return r.Number(i+usageActions)*5 >= r.Number(i+usageMaxActions)*4 || value*5 >= most*4 && (value > 0 || most > 0)
}

// wroteThreshold is mayRecord for an operation on an organization's budget, which returns at i whether it wrote a threshold's event.
func wroteThreshold(i int) func(*reply, error) bool {
	return func(r *reply, err error) bool { return err == nil && r.Has(i) && r.Optional(i) != "" }
}

// batchMayRecord is mayRecord for several charges of a session.
func batchMayRecord(r *reply, err error) bool {
	if err != nil {
		return mayRecord(r, err)
	}
	outcomes := r.List(0)
	for i := range outcomes.Values {
		if outcome := outcomes.List(i); outcome.Text(0) != "ok" || nearLimit(outcome, 1) {
			return true
		}
	}
	return false
}

// readMayRecord is mayRecord for the read of a session, which notes an expiry.
func readMayRecord(r *reply, err error) bool {
	const now, expires, ended = 0, 20, 21
	return err == nil && r.Optional(ended) == "" && r.Number(now) >= r.Number(expires)
}
