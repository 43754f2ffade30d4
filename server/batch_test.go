package server_test

// batchOf is the body of a batch.
func batchOf(items ...any) fields { return fields{"actions": items} }
