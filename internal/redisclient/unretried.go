package redisclient

import "github.com/redis/go-redis/v9"

// unretriedCmd is a command that go-redis never sends a second time after its reply was lost.
type unretriedCmd struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (unretriedCmd) NoRetry() bool { return true }

// explain gives a command that has neither an answer nor an error the error of its pipeline. go-redis leaves it without one
// when Redis refused a new connection with an answer (WRONGPASS).
func (c unretriedCmd) explain(pipeline error) {
	if pipeline != nil && c.Err() == nil && c.Val() == nil {
		c.SetErr(pipeline)
	}
}

// note sets the reason why a write was not confirmed, if the command was answered.
func (c unretriedCmd) note(unconfirmed error) {
	if answered(c.Val()) && unconfirmed != nil {
		c.SetErr(unconfirmed)
	}
}

// failure returns why there is no answer; see answer.
func (c unretriedCmd) failure() error {
	if c.Val() != nil {
		return nil
	}
	return c.Err()
}

// answer returns what Redis answered to a command that was sent, and the error of sending it. When a pipeline breaks, go-redis
// gives its error to all its commands, also to those that were answered before it broke. A command that no replica has
// confirmed has both an answer and an error.
func (c unretriedCmd) answer(sending error) (any, error) {
	if sending != nil && !isUnconfirmed(sending) {
		return nil, sending
	}
	if answered(c.Val()) {
		if isUnconfirmed(c.Err()) {
			return c.Val(), c.Err()
		}
		return c.Val(), nil
	}
	return c.Slice()
}
