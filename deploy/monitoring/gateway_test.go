package monitoring

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"remit/client"
	"remit/money"
	"remit/test/fakeprovider"
	"remit/test/serviceproc"
	"remit/test/suite"
)

// startGateway starts a gateway before a fake provider, and returns its URL.
func (s *service) startGateway() string {
	s.Helper()
	provider := httptest.NewServer(new(fakeprovider.Provider))
	s.Cleanup(provider.Close)
	config := fmt.Sprintf(`
{listen: "127.0.0.1:0", prices: prices.json, drain_seconds: 0, stop_seconds: 1, upstreams: [
  {name: openai, protocol: openai, base_url: "%s/v1", key_file: openai.key, organizations: ["*"]}]}`, provider.URL)
	return serviceproc.RunGateway(s, map[string]string{
		serviceproc.GatewayConfig: config, "openai.key": "key-of-the-provider",
		"prices.json": `{"gpt-4.1": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "max_output_tokens": 32768}}`,
	}, "REMIT_REDIS_URL="+s.redis.URL()).URL
}

// ask calls a model through the gateway, with a key of a session that has so much, and reads the answer until ctx ends.
func (s *service) ask(ctx context.Context, most money.MicroUSD, behaviour string) int {
	s.Helper()
	session := suite.Must(s.organization.CreateSession(s.Context(), client.SessionParams{AgentID: s.agent.ID, MaxValue: &most}))(s)
	key := suite.Must(s.organization.CreateSessionKey(s.Context(), session.ID, client.SessionKeyParams{}))(s)
	body := `{"model": "gpt-4.1", "stream": true, "messages": [{"role": "user", "content": "Name a colour."}]}`
	request := suite.Must(http.NewRequestWithContext(ctx, http.MethodPost, s.gateway+"/openai/v1/chat/completions", strings.NewReader(body)))(s)
	request.Header.Set("Authorization", "Bearer "+string(key.Key))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Fake", behaviour)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // some are cut
	return answer.StatusCode
}

// callModels settles calls in each way, lets one be refused, one be limited, one be cut, and leaves one.
func (s *service) callModels() {
	s.Helper()
	for _, call := range []struct {
		most      money.MicroUSD
		behaviour string
		status    int
	}{
		{money.USD, "", 200}, {money.USD, "usage=missing", 200}, {money.USD, "error=500", 500}, {1, "", 402}, {money.USD / 100, "", 200},
		{money.USD, "cut=midway", 200},
	} {
		if status := s.ask(s.Context(), call.most, call.behaviour); status != call.status {
			s.Errorf("a call with %q: %d, want %d", call.behaviour, status, call.status)
		}
	}
	counted := regexp.MustCompile(`\nremit_gateway_hang_ups_total (\d+)\n`)
	hangUps := func() string { return counted.FindString(s.scrape(s.gateway + "/metrics")) }
	before := hangUps()
	hangUp := s.beginCall("endless=1,pace=5")
	eventually(s.T, "two calls are in progress", func() bool {
		return strings.Contains(s.scrape(s.gateway+"/metrics"), "\nremit_gateway_calls_in_progress 2\n")
	})
	hangUp()
	eventually(s.T, "the gateway sees a client hang up", func() bool { return hangUps() != before })
}

// beginCall begins a stream, which ends when the caller hangs up.
func (s *service) beginCall(behaviour string) (hangUp func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.ask(ctx, money.USD, behaviour)
	}()
	return func() {
		cancel()
		<-ended
	}
}
