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

// readVectors returns what is in a file, which has rows.
func readVectors[T any](t *testing.T, name string) (read T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(vectors, name))
	if err := errors.Join(err, json.Unmarshal(text, &read)); err != nil || len(text) < 100 {
		t.Fatalf("%s: %d bytes, %v", name, len(text), err)
	}
	return read
}

func readTable(t testing.TB) *prices.Table {
	t.Helper()
	table, err := prices.ReadFile(filepath.Join(vectors, "table.json"))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// priced is a row about what a call costs, or costs at most.
type priced struct {
	Name, Model, Error, Requested, Served string
	HourCache                             bool `json:"hour_cache"`

	Usage  prices.Usage
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Cost   int64 `json:"cost_micro_usd"`
}

// check compares the cost of each row, or its error.
func check(t *testing.T, rows []priced, costOf func(priced) (money.MicroUSD, error)) {
	t.Helper()
	for _, row := range rows {
		cost, err := costOf(row)
		var unknown *prices.UnknownModel
		right := false
		switch row.Error {
		case "":
			right = err == nil && int64(cost) == row.Cost
		case "UnknownModel":
			right = errors.As(err, &unknown) && unknown.Model == row.Model && strings.Contains(err.Error(), "price table")
		case "InvalidUsage":
			right = errors.Is(err, prices.ErrUsage)
		}
		if !right {
			t.Errorf("%s: %d, %v, want %d %s", row.Name, cost, err, row.Cost, row.Error)
		}
	}
	if len(rows) == 0 {
		t.Error("there are no rows")
	}
}

func TestCostIsExactAndRoundedUpOnce(t *testing.T) {
	t.Parallel()
	table := readTable(t)
	check(t, readVectors[[]priced](t, "cases.json"), func(r priced) (money.MicroUSD, error) { return table.Cost(r.Model, r.Usage) })
}

func TestWorstTakesTheDearestKindsAndTier(t *testing.T) {
	t.Parallel()
	table := readTable(t)
	check(t, readVectors[[]priced](t, "worst.json"), func(r priced) (money.MicroUSD, error) {
		return table.WorstOf(r.Model, prices.Asked{Tier: r.Requested, HourCache: r.HourCache}, r.Input, r.Output)
	})
}

// What a request can get is held, and what the answer says was served is paid.
func TestCostsAreOfTheServiceTier(t *testing.T) {
	t.Parallel()
	file := readVectors[struct {
		Prices      json.RawMessage
		Worst, Cost []priced
		Tiers       []struct {
			Name, Model, Tier string
			Has               bool
		}
	}](t, "tiers.json")
	table, err := prices.Parse(file.Prices)
	if err != nil || len(file.Tiers) == 0 {
		t.Fatalf("%d rows, %v", len(file.Tiers), err)
	}
	check(t, file.Worst, func(r priced) (money.MicroUSD, error) { return table.WorstIn(r.Model, r.Requested, r.Input, r.Output) })
	check(t, file.Cost, func(r priced) (money.MicroUSD, error) { return table.CostIn(r.Model, r.Requested, r.Served, r.Usage) })
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
	for _, row := range readVectors[[]struct {
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
	for _, row := range readVectors[[]struct{ Name, Text, Model, Member string }](t, "invalid.json") {
		_, err := prices.Parse([]byte(row.Text))
		var invalid *prices.InvalidPrices
		if !errors.As(err, &invalid) || invalid.Model != row.Model || invalid.Member != row.Member {
			t.Errorf("%s: %#v", row.Name, err)
		} else if text := err.Error(); !strings.Contains(text, row.Model) || !strings.Contains(text, row.Member) || !strings.Contains(text, "correct") {
			t.Errorf("%s: %s", row.Name, text)
		}
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
			forAnHour := int64(0)
			if table.HasHourCache(model) {
				forAnHour = rand.Int64N(created + 1)
			}
			reasoning := rand.Int64N(output + 1)
			usage := prices.Usage{
				Input: input - cached - created, CachedInput: cached, CacheCreationInput: created - forAnHour, HourCacheCreationInput: forAnHour,
				Output: output - reasoning, Reasoning: reasoning,
			}
			cost, err := table.Cost(model, usage)
			asked := prices.Asked{Tier: "default", HourCache: table.HasHourCache(model)}
			worst, errWorst := table.WorstOf(model, asked, input+rand.Int64N(1000), output+rand.Int64N(1000))
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
