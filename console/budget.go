package console

import (
	"github.com/valyala/fasthttp"
	"remit/client"
	"remit/internal/chart"
)

const budget = Prefix + "/budget"

// budgetPage is the organization's budget.
type budgetPage struct {
	*client.Budget // nil for none

	Bar chart.Usage
}

func showBudget(v *visit) error {
	var set client.Budget
	err := v.api.get("/v1/budget", &set)
	if isNotFound(err) {
		return v.show("budget", "Budget", budgetPage{})
	}
	if err != nil {
		return err
	}
	return v.show("budget", "Budget", budgetPage{&set, budgetBar(set)})
}

var (
	setBudget    = call{fasthttp.MethodPut, "/v1/budget", fields{"max_value_usd": readLimit, "period": asTyped}, budget, "The budget is set."}
	removeBudget = call{fasthttp.MethodDelete, "/v1/budget", nil, budget, "The budget is removed. Sessions keep their limits."}
)

// readLimit reads an amount that must be given.
func readLimit(text string) (any, error) {
	value, err := readAmount(text)
	if value == nil && err == nil {
		return nil, invalid("say how many dollars")
	}
	return value, err
}
