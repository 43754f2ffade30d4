package redisstore

import "sync/atomic"

// writtenToken has what every use of an access token passes to scripts, formatted once.
type writtenToken struct {
	family, agent, events string

	refused atomic.Bool // set for good when Redis refuses it: its agent or family is revoked
}

// Remembered returns a copy of the token that is cheaper to use many times: it has its keys and arguments formatted.
func (s *Store) Remembered(t AccessToken) *AccessToken {
	t.written = &writtenToken{family: t.family(), agent: s.keys.agent(t.Agent), events: s.keys.events(t.Agent)}
	return &t
}
