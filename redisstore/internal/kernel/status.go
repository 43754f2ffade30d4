package kernel

// Status is the state of an agent, a session or a transaction.
type Status string

// An agent is Active or Revoked; a session can be any of these.
const (
	Active    Status = "active"
	Completed Status = "completed" // ended by a caller
	Expired   Status = "expired"   // it reached its expiry
	Revoked   Status = "revoked"   // its agent was revoked
)
