package redisclient

import "fmt"

// NotReadyError says why Redis cannot be used now, in words without anything secret. It is an ErrUnavailable.
type NotReadyError struct {
	Reason string
	cause  error
}

func (e *NotReadyError) Error() string { return fmt.Sprintf("%s: %v", e.Reason, e.cause) }

// Unwrap returns ErrUnavailable and the cause, for the log.
func (e *NotReadyError) Unwrap() []error { return []error{ErrUnavailable, e.cause} }

// unreachable is the reason when Redis has answered nothing that says one.
const unreachable = "Redis cannot be reached"

// reasons are what the errors mean with which Redis refuses a write, by their beginnings.
var reasons = []struct{ beginning, reason string }{
	{"OOM", "Redis is full: it has reached its maxmemory and refuses writes"},
	{"MISCONF", "Redis cannot save to its disk and refuses writes"},
	{"READONLY", "Redis is a replica and refuses writes"},
	{"NOREPLICAS", "Redis has fewer replicas than min-replicas-to-write and refuses writes"},
	{"LOADING", "Redis is loading its data"},
	{"MASTERDOWN", "Redis is a replica without its primary"},
	{"CLUSTERDOWN", "the Redis Cluster does not serve all of its slots"},
	{"BUSY", "Redis is busy with a script"},
	{"NOAUTH", "Redis does not let the service in"},
	{"WRONGPASS", "Redis does not let the service in"},
	{"NOPERM", "Redis does not let the service in"},
	{"ERR max number of clients", "Redis has as many clients as it may"},
}

// NotReady turns the error of a check into the reason that it stands for. It returns nil for nil.
func (c *Client) NotReady(err error) error {
	if err == nil {
		return nil
	}
	c.Suspect(err)
	for _, known := range reasons {
		if answeredWith(err, []string{known.beginning}) {
			return &NotReadyError{known.reason, err}
		}
	}
	return &NotReadyError{unreachable, err}
}
