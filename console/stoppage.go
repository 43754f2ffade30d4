package console

import "github.com/goccy/go-json"

// stopPage is the switch.
type stopPage struct {
	progress

	Truncated bool
	Unknown   bool     // how many agents are suspended cannot be read now
	Job       *stopJob // that runs; nil for none
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
	page := stopPage{Job: v.console.stops.shown(v.who.Organization, v.now)}
	if page.progress = v.progress(page.Job); !page.Running {
		page.Job = nil
	}
	all, err := v.fleet()
	if isUnauthorized(err) {
		return err
	}
	page.Unknown, page.Truncated = err != nil, all.Truncated()
	page.count(all)
	return v.show("stop", "Stop all", page)
}

// progress returns how far a job is, nil for none, without the counts of agents.
func (v *visit) progress(j *stopJob) progress {
	if j == nil || j.Running() {
		return progress{Running: j != nil}
	}
	result := v.console.result(j)
	return progress{Result: result.Text, Failed: result.Failed}
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
	p := v.progress(v.console.stops.shown(v.who.Organization, v.now))
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
