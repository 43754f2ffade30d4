package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// path is a hot path of the service.
type path struct {
	name string
	// prepare returns a function that gives each connection its turns.
	prepare func(tb testing.TB, s *service, a agent) (each func() turns)
	// scripts returns the path's script for that many goroutines, as a floor. Nil if the path uses several scripts.
	scripts func(tb testing.TB, s *service, a agent, next turns, goroutines int) []script
}

var paths = []path{charging, verifying, authorizing, reading, exchanging, refreshing, listing}

var (
	// charging is what an agent does before every action.
	charging = path{"charge", func(_ testing.TB, _ *service, a agent) func() turns {
		return same(a.charge(a.session))
	}, sendAgain}

	// verifying is what a proxy does for each request.
	verifying = path{"verify", func(_ testing.TB, _ *service, a agent) func() turns {
		return same(get("/v1/auth/verify?scope=read", a.bearer()))
	}, sendAgain}

	// authorizing verifies and charges for a proxy.
	authorizing = path{"authorize", func(_ testing.TB, _ *service, a agent) func() turns {
		return same(get("/v1/auth/authorize?value_usd=0.000001&session_id="+a.session.String(), a.bearer()))
	}, sendAgain}

	reading = path{"session", func(_ testing.TB, _ *service, a agent) func() turns {
		return same(get("/sessions/"+a.session.String(), a.bearer()))
	}, sendAgain}

	// exchanging opens a family each time. Each connection has its own agent, because an agent with 10,000 families also ends
	// one each time. The floor writes the same family again.
	exchanging = path{"exchange", func(tb testing.TB, s *service, _ agent) func() turns {
		return func() turns {
			return same(post("/v1/auth/token", "", s.newAgent(tb).exchangeBody()))()
		}
	}, exchangeAgain}

	refreshing = path{"refresh", followFamilies, rotateAgain}

	// listing reads a page of 20 sessions with the API key: a script and a pipeline.
	listing = path{"list", func(tb testing.TB, s *service, a agent) func() turns {
		for range 20 {
			s.ask(tb, "/sessions", a.sessionBody())
		}
		return same(get("/sessions?limit=20", s.asKey()))
	}, nil}
)

// same makes every connection repeat the same call.
func same(q call) func() turns {
	return func() turns { return func([]byte) call { return q } }
}

// followFamilies gives each connection its own family, and spends its latest refresh token for the next one.
func followFamilies(tb testing.TB, s *service, a agent) func() turns {
	return func() turns {
		token := s.ask(tb, "/v1/auth/token", a.exchangeBody()).RefreshToken
		return func(answer []byte) call {
			if next := textField(answer, "refresh_token"); next != "" {
				token = next
			}
			return post("/v1/auth/refresh", "", `{"refresh_token":"`+token+`"}`)
		}
	}
}

// sendAgain repeats the script of a call.
func sendAgain(tb testing.TB, s *service, a agent, next turns, goroutines int) []script {
	return sameScript(s.scriptOf(tb, a, next), goroutines)
}

// exchangeAgain is sendAgain for an exchange, with an agent per goroutine.
func exchangeAgain(tb testing.TB, s *service, _ agent, _ turns, goroutines int) []script {
	a := s.newAgent(tb)
	next := same(post("/v1/auth/token", "", a.exchangeBody()))()
	return sameScript(s.scriptOf(tb, a, next), goroutines)
}

// rotateAgain gives each goroutine its own family, and spends its next generation each time.
func rotateAgain(tb testing.TB, s *service, a agent, next turns, goroutines int) []script {
	sent := s.scriptAsSent(tb, next)
	familyKey := sent[4] // lua/identity/rotate_refresh.lua: KEYS[2], whose end is the id; ARGV[1] is the generation
	family := must(uuid.Parse(familyKey[len(familyKey)-len(uuid.Nil.String()):]))(tb)
	const firstArgument = 7
	generation := must(strconv.Atoi(sent[firstArgument]))(tb)
	scripts := make([]script, goroutines)
	for i := range scripts {
		words, spent := wordsOf(s.twin(tb, sent, s.org, a.id, family)), generation
		scripts[i] = func() []any {
			spent++
			words[firstArgument] = strconv.Itoa(spent)
			return words
		}
	}
	return scripts
}

// textField returns a string member of a JSON object without escapes, or "".
func textField(object []byte, name string) string {
	_, rest, _ := bytes.Cut(object, []byte(`"`+name+`":"`))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

// batchSize is the number of charges in a batch: the maximum that the service accepts.
const batchSize = 100

// batchOf is POST /v1/actions with charges that are spread over that many sessions.
func batchOf(tb testing.TB, s *service, a agent, sessions int) call {
	each := []uuid.UUID{a.session}
	for len(each) < sessions {
		each = append(each, s.ask(tb, "/sessions", a.sessionBody()).ID)
	}
	items := make([]string, batchSize)
	for i := range items {
		items[i] = fmt.Sprintf(`{"session_id":%q,"value_usd":0.000001}`, each[i%sessions])
	}
	return post("/v1/actions", a.bearer(), `{"actions":[`+strings.Join(items, ",")+`]}`)
}
