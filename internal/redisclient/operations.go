package redisclient

import "slices"

// operations are the names by which calls are counted: those of the scripts, and the commands of Redis that Call sends. A call
// carries the place of its name in this list, so that it is counted without looking for the name.
var operations = []string{"other"}

// operationID is a place in operations.
type operationID int

// registerOperation is called while the process starts, for each script.
func registerOperation(name string) operationID {
	if at := slices.Index(operations, name); at >= 0 {
		return operationID(at)
	}
	operations = append(operations, name)
	return operationID(len(operations) - 1)
}

var (
	opHGet, opHMGet, opZAdd    = registerOperation("hget"), registerOperation("hmget"), registerOperation("zadd")
	opGet, opPTTL, opExists    = registerOperation("get"), registerOperation("pttl"), registerOperation("exists")
	opSet, opHGetAll, opZRange = registerOperation("set"), registerOperation("hgetall"), registerOperation("zrange")
	opZScore                   = registerOperation("zscore")
)

// operationOf returns the place of a command of Redis.
func operationOf(verb string) operationID {
	switch verb {
	case "hget":
		return opHGet
	case "hmget":
		return opHMGet
	case "zadd":
		return opZAdd
	case "get":
		return opGet
	case "pttl":
		return opPTTL
	case "exists":
		return opExists
	case "set":
		return opSet
	case "hgetall":
		return opHGetAll
	case "zrange":
		return opZRange
	case "zscore":
		return opZScore
	}
	return 0
}
