package console

import "github.com/valyala/fasthttp"

const apiAgent = "/v1/agents/{agent}"

var (
	// reason is the body of a suspension.
	reason = fields{"reason": readText}

	createAgent  = call{post, "/v1/agents", fields{"name": asTyped, "scopes": readWords, "description": readText}, agent, "The agent was created."}
	suspendAgent = call{post, apiAgent + "/suspend", reason, agent, "The agent is suspended."}
	resumeAgent  = call{post, apiAgent + "/resume", nil, agent, "The agent is resumed."}
	revokeAgent  = call{post, apiAgent + "/revoke", nil, agent, "The agent is revoked."}
	rotateSecret = call{post, apiAgent + "/secret/rotate", nil, agent, "The agent has a new secret. The one before is not valid any more."}
)

func revokeFamily(v *visit) error {
	if err := v.send(fasthttp.MethodDelete, apiAgent+"/families/{family}", nil, nil); err != nil {
		return err
	}
	return v.done(v.at(agent), "The token family is revoked, with its access tokens.")
}

// limitAgent sets the agent's limits. An empty field removes one.
func limitAgent(v *visit) error {
	limits, err := fields{"max_value_usd_per_day": readAmount, "max_actions_per_minute": readCount, "max_open_sessions": readCount}.read(v)
	if err != nil {
		return err
	}
	if err := v.send(fasthttp.MethodPatch, apiAgent, map[string]any{"limits": limits}, nil); err != nil {
		return err
	}
	return v.done(v.at(agent), "The limits are set.")
}
