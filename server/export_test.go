package server

import (
	"reflect"
	"strings"
	"time"

	"remit/server/budgets"
)

// SetTimeouts shortens what a test would wait for. It must be called before Serve; 0 leaves what was.
func (s *Server) SetTimeouts(read, write, idle time.Duration) {
	for _, set := range []struct {
		timeout *time.Duration
		to      time.Duration
	}{{&s.front.HTTP.ReadTimeout, read}, {&s.front.HTTP.WriteTimeout, write}, {&s.front.HTTP.IdleTimeout, idle}} {
		if set.to > 0 {
			*set.timeout = set.to
		}
	}
}

// SetPulse sets how often a stream without events shows that it lives. It must be called before Serve.
func (s *Server) SetPulse(every time.Duration) { s.records.Pulse = every }

// OpenConnections returns how many connections there are.
func (s *Server) OpenConnections() int { return int(s.front.HTTP.GetOpenConnectionsCount()) }

// Routes returns every method and path that the server answers, without HEAD, which is GET.
func (s *Server) Routes() (all []string) {
	for method, paths := range s.routes().Router.List() {
		for _, path := range paths {
			if method != "HEAD" {
				all = append(all, strings.TrimPrefix(method, "*")+" "+path)
			}
		}
	}
	return all
}

// SessionFields returns the members of the requests that create a session, change its limits and take a lease of it.
func SessionFields() (created, changed, leased []string) {
	return membersOf(budgets.CreateSessionRequest{}), membersOf(budgets.ChangeLimitsRequest{}), membersOf(budgets.LeaseRequest{})
}

func membersOf(request any) (names []string) {
	for i := range reflect.TypeOf(request).NumField() {
		name, _, _ := strings.Cut(reflect.TypeOf(request).Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
