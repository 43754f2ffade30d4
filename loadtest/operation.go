package main

// operation is a kind of request, and a row of the table.
type operation int

func (o operation) String() string {
	return [operations]string{
		"organization", "agent", "token", "session", "action", "begin", "commit", "rollback", "refresh", "end", "read",
		"late action", "list", "verify", "batch", "session list",
	}[o]
}

// forTokens reports whether the operation itself requests tokens.
func (o operation) forTokens() bool { return o == opToken || o == opRefresh }

const (
	opOrganization operation = iota
	opAgent
	opToken
	opSession
	opAction
	opBegin
	opCommit
	opRollback
	opRefresh
	opEnd
	opRead // of a session, before and after its end
	opLate // an action after the end, which must be refused
	opList // of a session's transactions, all pages
	opVerify
	opBatch
	opSessions // a page of an agent's active sessions
	operations

	onlyMixed = opVerify // and all that follow
)
