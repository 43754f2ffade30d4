package server_test

import "testing"

// A token for Remit and one tool must not become one for another tool: not for another agent, not by a child for the same agent, and not
// along a chain.
func TestAnExchangeGivesNoAudienceBeyondItsSubjectToken(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDelegation()
		own := d.childOf(d.planner.access, d.plan, d.agent.id) // of the same agent
		both := d.grantFor(issuer, mail).is(200).text("access_token")
		trail := d.trail()
		for name, subject := range map[string]string{"Remit alone": d.planner.access, "Remit and one tool": both} {
			for _, session := range []string{d.child, own} {
				for _, beyond := range [][]string{{wiki}, {issuer, wiki}, {mail, wiki}, {mail + "/"}, {"http://localhost/x"}} {
					var more []string
					for _, resource := range beyond {
						more = append(more, "resource", resource)
					}
					r := d.exchangeToken(subject, session, more...)
					r.what = name
					r.refusedOAuth(400, "invalid_target")
					d.exchangeToken(subject, session, append(more, "audience", wiki)...).refusedOAuth(400, "invalid_target")
				}
			}
		}
		d.delegate("resource", mail).refusedOAuth(400, "invalid_target")
		trail.gainsNothing("a refused exchange")
		if families := d.get("/v1/agents/"+d.agent.id+"/families", asKey(d.key)).is(200).array(); len(families) != 2 {
			t.Errorf("%d families", len(families))
		}

		narrow := d.exchangeToken(both, own).is(200).text("access_token") // for Remit alone
		wide := d.exchangeToken(both, own, "resource", mail, "resource", issuer+"/").is(200).text("access_token")
		below := d.childOf(wide, own, d.agent.id)
		d.exchangeToken(narrow, below, "resource", mail).refusedOAuth(400, "invalid_target")
		d.exchangeToken(wide, below, "resource", wiki).refusedOAuth(400, "invalid_target")
		d.exchangeToken(wide, below, "resource", mail).is(200)
	})
}
