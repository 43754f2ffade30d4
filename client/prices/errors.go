package prices

import "strconv"

// UnknownModel: the table has no prices for the model.
type UnknownModel struct{ Model string }

// Error names the model and says what to do.
func (e *UnknownModel) Error() string {
	return "no prices for model " + strconv.Quote(e.Model) + ": add an entry of this name to the price table, or map the model to an entry"
}

// InvalidPrices: the table cannot be used.
type InvalidPrices struct {
	Model  string // empty: the table as a whole
	Member string // empty: the entry as a whole
	Reason string
}

// Error names the model and the member, and says what to do.
func (e *InvalidPrices) Error() string {
	where := "the price table"
	if e.Model != "" {
		where = "prices of model " + strconv.Quote(e.Model)
	}
	if e.Member != "" {
		where += ": " + e.Member
	}
	return where + " " + e.Reason + "; correct the price table"
}
