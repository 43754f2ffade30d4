package prices_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remit/client/prices"
	"remit/money"
)

// vectors are the files that the tests of every SDK read.
const vectors = "../../sdk/testdata/prices"

func readVectors[T any](t *testing.T, name string) (rows []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(vectors, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) == 0 {
		t.Fatalf("%s: %d rows, %v", name, len(rows), err)
	}
	return rows
}

func readTable(t testing.TB) *prices.Table {
	t.Helper()
	table, err := prices.ReadFile(filepath.Join(vectors, "table.json"))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// checkCost compares a cost or an error with those of a vector.
func checkCost(t *testing.T, model string, cost money.MicroUSD, err error, want *money.MicroUSD, wantError string) {
	t.Helper()
	var unknown *prices.UnknownModel
	switch wantError {
	case "":
		if err != nil || cost != *want {
			t.Errorf("%d, %v, want %d", cost, err, *want)
		}
	case "UnknownModel":
		if !errors.As(err, &unknown) || unknown.Model != model || !strings.Contains(err.Error(), "price table") {
			t.Errorf("%d, %v", cost, err)
		}
	case "InvalidUsage":
		if !errors.Is(err, prices.ErrUsage) {
			t.Errorf("%d, %v", cost, err)
		}
	default:
		t.Errorf("there is no error %s", wantError)
	}
}

func TestCostIsExactAndRoundedUpOnce(t *testing.T) {
	t.Parallel()
	table := readTable(t)
	for _, row := range readVectors[struct {
		Name, Model, Error string
		Usage              prices.Usage
		Cost               *int64 `json:"cost_micro_usd"`
	}](t, "cases.json") {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			cost, err := table.Cost(row.Model, row.Usage)
			checkCost(t, row.Model, cost, err, (*money.MicroUSD)(row.Cost), row.Error)
		})
	}
}

func TestWorstTakesTheDearestKindsAndTier(t *testing.T) {
	t.Parallel()
	table := readTable(t)
	for _, row := range readVectors[struct {
		Name, Model, Error string
		Input              int64  `json:"input_tokens"`
		Output             int64  `json:"output_tokens"`
		Cost               *int64 `json:"cost_micro_usd"`
	}](t, "worst.json") {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			cost, err := table.Worst(row.Model, row.Input, row.Output)
			checkCost(t, row.Model, cost, err, (*money.MicroUSD)(row.Cost), row.Error)
		})
	}
}

// What a request can get is held, and what the answer says was served is paid.
func TestCostsAreOfTheServiceTier(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(vectors, "tiers.json"))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Name, Model, Requested, Served string
		Usage                          prices.Usage
		Input                          int64 `json:"input_tokens"`
		Output                         int64 `json:"output_tokens"`
		Cost                           int64 `json:"cost_micro_usd"`
	}
	var file struct {
		Prices      json.RawMessage
		Worst, Cost []row
		Tiers       []struct {
			Name, Model, Tier string
			Has               bool
		}
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Worst) == 0 || len(file.Cost) == 0 || len(file.Tiers) == 0 {
		t.Fatalf("%d and %d rows, %v", len(file.Worst), len(file.Cost), err)
	}
	table, err := prices.Parse(file.Prices)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Worst {
		if worst, err := table.WorstIn(r.Model, r.Requested, r.Input, r.Output); err != nil || int64(worst) != r.Cost {
			t.Errorf("worst, %s: %d, %v, want %d", r.Name, worst, err, r.Cost)
		}
	}
	for _, r := range file.Cost {
		if cost, err := table.CostIn(r.Model, r.Requested, r.Served, r.Usage); err != nil || int64(cost) != r.Cost {
			t.Errorf("cost, %s: %d, %v, want %d", r.Name, cost, err, r.Cost)
		}
	}
	for _, r := range file.Tiers {
		if has := table.HasTier(r.Model, r.Tier); has != r.Has {
			t.Errorf("%s: %t", r.Name, has)
		}
	}
	if table.HasTier("some", "ultrafast") || table.HasTier("absent", "flex") {
		t.Error("a model has another tier than its prices say")
	}
}

func TestLimitsAreTheTables(t *testing.T) {
	t.Parallel()
	table := readTable(t)
	for _, row := range readVectors[struct {
		Name, Model string
		Input       int64 `json:"max_input_tokens"`
		Output      int64 `json:"max_output_tokens"`
	}](t, "limits.json") {
		limits, err := table.Limits(row.Model)
		if want := (prices.Limits{MaxInputTokens: row.Input, MaxOutputTokens: row.Output}); err != nil || limits != want {
			t.Errorf("%s: %+v, %v, want %+v", row.Name, limits, err, want)
		}
	}
	var unknown *prices.UnknownModel
	if _, err := table.Limits("embedding"); !errors.As(err, &unknown) {
		t.Errorf("a model without prices: %v", err)
	}
}

func TestParseRefusesWhatIsNoTableAndNamesTheFault(t *testing.T) {
	t.Parallel()
	for _, row := range readVectors[struct{ Name, Text, Model, Member string }](t, "invalid.json") {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			_, err := prices.Parse([]byte(row.Text))
			var invalid *prices.InvalidPrices
			if !errors.As(err, &invalid) || invalid.Model != row.Model || invalid.Member != row.Member {
				t.Fatalf("%#v", err)
			}
			if text := err.Error(); !strings.Contains(text, row.Model) || !strings.Contains(text, row.Member) || !strings.Contains(text, "correct") {
				t.Error(text)
			}
		})
	}
}

func TestATableOfMoreThan16MiBIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(path, []byte("{"+strings.Repeat(" ", 16<<20)+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var invalid *prices.InvalidPrices
	if _, err := prices.ReadFile(path); !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Error(err)
	}
	if _, err := prices.ReadFile(path + ".absent"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Whatever a call uses within its bounds, it costs no more than the worst case of these bounds.
func TestNoCallCostsMoreThanItsWorstCase(t *testing.T) {
	t.Parallel()
	table := readTable(t)
	for _, model := range []string{"plain", "full", "two-tiers", "exact", "texts", "smallest", "free"} {
		for range 2000 {
			input, output := rand.Int64N(400_000), rand.Int64N(100_000)
			cached := rand.Int64N(input + 1)
			created := rand.Int64N(input - cached + 1)
			reasoning := rand.Int64N(output + 1)
			usage := prices.Usage{Input: input - cached - created, CachedInput: cached, CacheCreationInput: created, Output: output - reasoning, Reasoning: reasoning}
			cost, err := table.Cost(model, usage)
			worst, errWorst := table.Worst(model, input+rand.Int64N(1000), output+rand.Int64N(1000))
			if err != nil || errWorst != nil || cost > worst {
				t.Fatalf("%s, %+v: %d, more than %d, or %v, %v", model, usage, cost, worst, err, errWorst)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"table.json", "invalid.json"} {
		text, err := os.ReadFile(filepath.Join(vectors, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		var invalid []struct{ Text string }
		if json.Unmarshal(text, &invalid) == nil {
			for _, row := range invalid {
				f.Add([]byte(row.Text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := prices.Parse(text)
		var invalid *prices.InvalidPrices
		if err != nil {
			if !errors.As(err, &invalid) || table != nil {
				t.Fatalf("%#v", err)
			}
			return
		}
		var entries map[string]json.RawMessage
		if err := json.Unmarshal(text, &entries); err != nil {
			t.Fatalf("a table that is no JSON object: %v", err)
		}
		for name := range entries {
			cost, err := table.Cost(name, prices.Usage{Input: 1, CachedInput: 1, CacheCreationInput: 1, Output: 1, Reasoning: 1})
			worst, errWorst := table.Worst(name, 3, 2)
			if (err == nil) != (errWorst == nil) || cost < 0 || cost > worst || worst > 5*money.USD {
				t.Fatalf("%q: %d of %d, %v, %v", name, cost, worst, err, errWorst)
			}
		}
	})
}
