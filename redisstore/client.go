package redisstore

import "remit/internal/redisclient"

// Names of package redisclient that callers of the store need.
type (
	// Durability says when a write is acknowledged: Local or Replicated.
	Durability = redisclient.Durability
	// NotReadyError says why the store cannot be used now, in a text without secrets. It is an ErrUnavailable.
	NotReadyError = redisclient.NotReadyError
)

const (
	// Local acknowledges a write once the primary has it.
	Local = redisclient.Local
	// Replicated acknowledges a write once a replica has confirmed it too.
	Replicated = redisclient.Replicated
	// ConnectionsPerServer is the most connections that a store opens to each server.
	ConnectionsPerServer = redisclient.ConnectionsPerServer
)

var (
	// ErrUnavailable means that Redis cannot be reached or cannot write now. Nothing was changed.
	ErrUnavailable = redisclient.ErrUnavailable
	// ErrOverloaded is the ErrUnavailable of a call that was shed at once, unsent.
	ErrOverloaded = redisclient.ErrOverloaded
	// ErrOutcomeUnknown means that the reply to a write was lost. The write may have happened.
	ErrOutcomeUnknown = redisclient.ErrOutcomeUnknown
)

// Short names for what each resource uses.
type (
	flow   = redisclient.Flow
	script = redisclient.Script
	reply  = redisclient.Reply
)

const (
	reads      = redisclient.Reads
	writes     = redisclient.Writes
	bestEffort = redisclient.BestEffort

	callTimeout = redisclient.CallTimeout
)

var errReply = redisclient.ErrReply
