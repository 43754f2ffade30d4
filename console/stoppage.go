package console

import "github.com/goccy/go-json"

// stopPage is the switch.
type stopPage struct {
	progress

	Truncated bool
	Unknown   bool     // how many agents are suspended cannot be read now
	Job       *stopJob // that runs; nil for none
	Ended     *flash   // the result of one that has ended unseen
}

// progress is how far a stop is, as the script of the pages asks for it.
type progress struct {
	Running   bool   `json:"running"`
	Live      int64  `json:"live"`
	Suspended int64  `json:"suspended"`
	Result    string `json:"result,omitempty"` // how it ended; "" when that was seen
	Failed    bool   `json:"failed,omitempty"`
}

// showStop shows the switch, also when the agents cannot be counted.
func showStop(v *visit) error {
	page := stopPage{}
	if j := v.console.stops.shown(v.who.Organization, v.now); j != nil && j.Running() {
		page.Job, page.Running = j, true
	} else if j != nil {
		result := v.console.result(j)
		page.Ended = &result
	}
	all, err := v.fleet()
	if isUnauthorized(err) {
		return err
	}
	page.Unknown, page.Truncated = err != nil, all.Truncated()
	page.count(all)
	return v.show("stop", "Stop all", page)
}

func (p *progress) count(all fleet) {
	for a := range all.Agents.all() {
		switch a.state() {
		case statusSuspended:
			p.Suspended++
			p.Live++
		case statusActive:
			p.Live++
		}
	}
}

// showProgress answers the script of the page.
func showProgress(v *visit) error {
	var p progress
	if j := v.console.stops.shown(v.who.Organization, v.now); j != nil && j.Running() {
		p.Running = true
	} else if j != nil {
		result := v.console.result(j)
		p.Result, p.Failed = result.Text, result.Failed
	}
	all, err := v.fleet()
	if err != nil {
		return err
	}
	p.count(all)
	text, err := json.Marshal(p)
	v.ctx.Response.Header.SetContentType("application/json")
	v.ctx.SetBody(text)
	return err
}
