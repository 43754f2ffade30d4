// Package redisclient sends commands to Redis without running any of them twice.
//
// A Client runs scripts (Run) and commands (Call) on one Redis, a Sentinel-led Redis or a Redis Cluster. It sends a command
// again only when Redis certainly did not carry it out: a refused connection, a script the server does not know yet, a slot
// that is moving. Every other failure is one of two errors: ErrUnavailable (nothing happened) or ErrOutcomeUnknown (a write
// may have happened).
//
// To follow one call from Run to the wire: run.go repeats it, send.go finds its server, pipeliner.go sends it alone or in a
// pipeline that calls share, fairqueue.go says whose turn it is and durability.go waits for a replica. The client knows
// nothing of what is stored: scripts come as text, keys as strings, and Refusals say what a script's reply codes mean.
package redisclient
