package fleet

// operation is a kind of request, and a row of the table.
type operation int

func (o operation) String() string {
	return [operations]string{
		"organization", "agent", "token", "session", "action", "begin", "commit", "rollback", "refresh", "end", "read",
		"late action", "list", "verify", "batch", "session list", "lease", "leased action", "settle", "child", "top-up", "tree", "budget",
		"suspend", "usage",
	}[o]
}

// forTokens reports whether the operation itself requests tokens.
func (o operation) forTokens() bool { return o == opToken || o == opRefresh }

// mayBeLocal reports whether the operation may succeed without a request of its own.
func (o operation) mayBeLocal() bool { return o == opLeased || o == opSettle }

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
	opLease    // of a session, opened
	opLeased   // an action that is charged to a lease, mostly without a request
	opSettle   // closes a lease
	opChild    // creates a session of a tree below its root
	opTopUp    // of a session of a tree
	opTree     // reads one
	opBudget   // of the organization, set or read
	opSuspend  // suspends or resumes a session of a tree
	opUsage    // of a session or the organization, after the end of all sessions
	operations

	onlySome = opVerify // and all that follow: only in some scenarios
)
