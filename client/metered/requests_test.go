package metered

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"remit/client/prices"
)

// The rows of sdk/testdata/metering hold Go and TypeScript to the same bounds.
func TestRequestsAreBoundedAsInEveryLanguage(t *testing.T) {
	t.Parallel()
	text := must(os.ReadFile("../../sdk/testdata/metering/requests.json"))(t)
	var vectors struct {
		Prices   json.RawMessage
		Requests []struct {
			Name, Method, Path, Body, Error string
			Headers                         map[string]string
			Input                           *int64
			Output                          int64
			Passes                          bool
		}
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors.Requests) == 0 {
		t.Fatalf("%d rows, %v", len(vectors.Requests), err)
	}
	transport := &Transport{Prices: parsed(t, string(vectors.Prices))}
	for _, row := range vectors.Requests {
		r := post(t, row.Path, row.Body)
		if row.Method != "" {
			r.Method = row.Method
		}
		for name, value := range row.Headers {
			r.Header.Set(name, value)
		}
		format, passes := formatOf(r)
		if passes || row.Passes {
			if passes != row.Passes {
				t.Errorf("%s: it passes: %t", row.Name, passes)
			}
			continue
		}
		q, err := transport.read(r, format)
		if err == nil {
			_, err = q.Worst()
		}
		switch {
		case row.Error != "" || err != nil:
			if kindOf(err) != row.Error {
				t.Errorf("%s: %v, want %s", row.Name, err, row.Error)
			}
		case q.MostOutput != row.Output, row.Input == nil && q.MostInput != int64(len(row.Body)), row.Input != nil && q.MostInput != *row.Input:
			t.Errorf("%s: %d and %d", row.Name, q.MostInput, q.MostOutput)
		}
	}
}

func kindOf(err error) string {
	switch {
	case errors.As(err, new(*UnboundedCall)):
		return "UnboundedCall"
	case errors.As(err, new(*UsageMissing)):
		return "UsageMissing"
	case errors.As(err, new(*prices.UnknownModel)):
		return "UnknownModel"
	}
	return ""
}
