package faults

import "slices"

// operation is all calls with one idempotency key, or one call without a key.
type operation struct {
	Call             // the first, with the combined outcome of all
	key     string   // kind, subject and idempotency key
	answers []string // distinct acknowledgements
	refusal string   // code of a final refusal
}

// operationsOf joins the calls of each idempotency key. One final answer decides the operation.
func operationsOf(calls []Call) []*operation {
	var operations []*operation
	byKey := map[string]*operation{}
	for _, c := range calls {
		key := string(c.Kind) + " " + c.Subject + " " + c.Key
		o := byKey[key]
		if o == nil || c.Key == "" {
			o = &operation{Call: c, key: key}
			byKey[key] = o
			operations = append(operations, o)
		}
		o.join(c)
	}
	return operations
}

func (o *operation) join(c Call) {
	switch {
	case c.Outcome == OK:
		if !slices.Contains(o.answers, c.Answer) {
			o.answers = append(o.answers, c.Answer)
		}
	case c.decided():
		o.refusal = c.Code
	}
	switch {
	case len(o.answers) > 0:
		o.Outcome = OK
	case o.refusal != "":
		o.Outcome = Refused
	case c.Outcome == Unknown:
		o.Outcome = Unknown
	}
}

// joinSettlements joins the settlements of each lease: whichever comes first has the effect, which is the same. When one was
// acknowledged and Redis's clock has stepped ahead since, the other is refused, because the settled lease is forgotten.
func joinSettlements(operations []*operation) []*operation {
	likelihood := []Outcome{Refused, Unknown, OK}
	var joined []*operation
	byLease := map[string]*operation{}
	for _, o := range operations {
		if o.Kind != Settle || o.Subject == "" {
			joined = append(joined, o)
			continue
		}
		first := byLease[o.Subject]
		if first == nil {
			only := *o
			byLease[o.Subject] = &only
			joined = append(joined, &only)
		} else if slices.Index(likelihood, o.Outcome) > slices.Index(likelihood, first.Outcome) {
			first.Outcome = o.Outcome
		}
	}
	return joined
}

// outcomeOf returns the outcome of the operation that a call was one try of.
func (h *History) outcomeOf(c Call) Outcome {
	tries := slices.DeleteFunc(h.Calls(), func(other Call) bool {
		return other.Kind != c.Kind || other.Subject != c.Subject || other.Key != c.Key
	})
	return operationsOf(tries)[0].Outcome
}
