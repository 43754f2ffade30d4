package main

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"remit/client"
	"remit/client/metered"
	"remit/client/prices"
)

const priceTable = `{"small": {
	"max_input_tokens": 100, "input_cost_per_token": 1.5e-06, "cache_read_input_token_cost": 1e-07, "output_cost_per_token": 6e-06, "output_cost_per_reasoning_token": "9e-06"
}}`

// priced computes what calls of models cost, and makes two of which that cannot be known.
func priced(done *steps, session *client.Session) {
	table := get(prices.Parse([]byte(priceTable)))
	done.add("read prices of models", "%t", table != nil)
	done.add("what a call costs", "%s", get(table.Cost("small", prices.Usage{Input: 101, CachedInput: 7, Output: 3, Reasoning: 2})))
	done.add("the most that a call costs", "%s", get(table.Worst("small", 1000, 10)))
	unknown := as[*prices.UnknownModel](second(table.Cost("large", prices.Usage{})))
	done.add("a model has no price", "%s", unknown.Model)
	invalid := as[*prices.InvalidPrices](second(prices.Parse([]byte(`{"small": {"input_cost_per_token": -1}}`))))
	done.add("prices are invalid", "%s %s", invalid.Model, invalid.Member)
	model := &http.Client{Transport: &metered.Transport{Session: session, Prices: table, Base: withoutUsage{}}}
	call := func(bound string) error {
		body := `{"model": "small", ` + bound + `"messages": [{"role": "user", "content": "` + strings.Repeat("hello ", 100) + `"}]}`
		answer, err := model.Post("http://127.0.0.1:9/v1/chat/completions", "application/json", strings.NewReader(body))
		if err == nil {
			_, err = io.ReadAll(answer.Body)
			err = errors.Join(err, answer.Body.Close())
		}
		return err
	}
	done.add("nothing bounds a call", "%t", errors.As(call(""), new(*metered.UnboundedCall)))
	missing := as[*metered.UsageMissing](call(`"max_tokens": 10, `))
	done.add("an answer has no usage", "%s", missing.Model)
}

// withoutUsage is a provider that does not say what a call used.
type withoutUsage struct{}

func (withoutUsage) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, err
}
