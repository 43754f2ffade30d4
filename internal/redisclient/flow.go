package redisclient

// Flow says who a call is made for. Calls of one flow wait for one another, and each flow has an equal share of Redis when
// more calls come than it can serve. Flows are only compared: neither field means anything to the client.
type Flow struct {
	Owner [16]byte
	Kind  byte
}
