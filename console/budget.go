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

func setBudget(v *visit) error {
	value, err := readAmount(v.form("max_value_usd"))
	if err != nil {
		return err
	}
	if value == nil {
		return invalid("say how many dollars")
	}
	body := map[string]any{"max_value_usd": value, "period": v.form("period")}
	if err := v.api.change(fasthttp.MethodPut, "/v1/budget", "", body, nil); err != nil {
		return err
	}
	return v.done(budget, "The budget is set.")
}

func removeBudget(v *visit) error {
	if err := v.confirmed("remove"); err != nil {
		return err
	}
	if err := v.api.change(fasthttp.MethodDelete, "/v1/budget", "", nil, nil); err != nil && !isNotFound(err) { // it is gone
		return err
	}
	return v.done(budget, "The budget is removed. Sessions keep their limits.")
}
