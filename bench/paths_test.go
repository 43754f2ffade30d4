package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/lua"
)

const connections = 256

// BenchmarkCharge is POST /sessions/{id}/actions by an access token: what a fleet calls before every step.
func BenchmarkCharge(b *testing.B) {
	s := startService(b)
	charge := post("/sessions/"+s.session+"/actions", s.asAgent(), `{"action_type":"llm.call","value_usd":0.000001}`)
	for _, at := range []int{1, connections} {
		b.Run(fmt.Sprintf("connections=%d", at), func(b *testing.B) {
			bare := startBare(b, 270)
			compare(b, over(connect(b, s.addr, at), "charge", charge),
				over(connect(b, bare, at), "bare", get("/", "")), s.chargeScript(b, at))
		})
	}
}

// BenchmarkVerify is GET /v1/auth/verify, as a gateway asks for each request.
func BenchmarkVerify(b *testing.B) {
	s := startService(b)
	bare := startBare(b, 1)
	compare(b, over(connect(b, s.addr, connections), "verify", get("/v1/auth/verify?scope=read", s.asAgent())),
		over(connect(b, bare, connections), "bare", get("/", "")))
}

// BenchmarkGetSession is GET /sessions/{id} by an access token.
func BenchmarkGetSession(b *testing.B) {
	s := startService(b)
	bare := startBare(b, 400)
	compare(b, over(connect(b, s.addr, connections), "get", get("/sessions/"+s.session, s.asAgent())),
		over(connect(b, bare, connections), "bare", get("/", "")))
}

// BenchmarkTokenExchange is POST /v1/auth/token.
func BenchmarkTokenExchange(b *testing.B) {
	s := startService(b)
	bare := startBare(b, 800)
	exchange := post("/v1/auth/token", "", fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, s.agent, s.secret))
	compare(b, over(connect(b, s.addr, connections), "exchange", exchange),
		over(connect(b, bare, connections), "bare", get("/", "")))
}

// BenchmarkBatch is POST /v1/actions with 100 charges of one session. x-redis compares charges, not calls.
func BenchmarkBatch(b *testing.B) {
	s := startService(b)
	items := ""
	for i := range 100 {
		if i > 0 {
			items += ","
		}
		items += fmt.Sprintf(`{"session_id":%q,"value_usd":0.000001}`, s.session)
	}
	batch := post("/v1/actions", s.asAgent(), `{"actions":[`+items+`]}`)
	calls := connect(b, s.addr, 8)
	compare(b, contender{"batch", func(n int) ([]time.Duration, error) {
		return calls.run(max(n/100, 1), func(int) call { return batch })
	}}, s.chargeScript(b, connections))
}

// over makes the same call over and over.
func over(c *clients, name string, q call) contender {
	return contender{name, func(n int) ([]time.Duration, error) {
		return c.run(n, func(int) call { return q })
	}}
}

// chargeScript calls the charge script of the service as the service does, without the service.
func (s *service) chargeScript(tb testing.TB, goroutines int) contender {
	agent := uuid.MustParse(s.agent)
	cell := s.agent[len(s.agent)-4:]
	keys := []string{"remit:a:{" + cell + "}:" + s.agent, "remit:s:{" + cell + "}:" + s.session, "remit:ev:{" + cell + "}:" + s.agent}
	return plainRedis(tb, s.redis, goroutines, lua.Source("charge_session"), keys,
		s.org[:], agent[:], "", 1, 1, "", "1000 agent bench")
}
