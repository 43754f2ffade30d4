package fleet

import "time"

// result is the outcome of a run.
type result struct {
	fleet     *fleet
	unchecked error // why the totals were not checked; nil: they were
	own       bool  // the service was started for the run
	began     time.Time
}
