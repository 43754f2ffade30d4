package kernel

import (
	"slices"

	"remit/internal/redisclient"
)

// MayRecord says whether a call that ended so may have written an event.
func MayRecord(_ *redisclient.Reply, err error) bool { return !slices.Contains(writeNothing, err) }

// writeNothing are refusals of which no script writes an event, and which strangers can cause.
var writeNothing = []error{
	ErrUnknownAgent, ErrInvalidCredentials, ErrInvalidToken, ErrInvalidAPIKey, ErrInvalidRefreshToken, ErrUnknownFamily,
	ErrUnknownSession, ErrUnknownTransaction, ErrUnknownLease, ErrUnknownRequest, ErrHoldsDue, ErrAgentHoldsDue,
}

// RecordingIf limits which calls of the operation may have written into an audit trail.
func (k KeyedScript) RecordingIf(may func(*redisclient.Reply, error) bool) KeyedScript {
	k.Script.Watched(may)
	return k
}
