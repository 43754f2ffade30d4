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

// commandOperations are the places of commands of Redis; any other command is "other".
var commandOperations = func() map[string]operationID {
	places := map[string]operationID{}
	for _, verb := range []string{"hget", "hmget", "zadd", "get", "pttl", "exists", "set", "hgetall", "hdel", "zrange", "zscore", "zrem"} {
		places[verb] = registerOperation(verb)
	}
	return places
}()
