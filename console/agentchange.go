package console

import (
	"github.com/valyala/fasthttp"
	"remit/client"
)

// changeAgent sends a change of the agent in the path, and leads back to its page.
func (v *visit) changeAgent(method, below string, body, into any) error {
	if err := v.api.change(method, "/v1/agents/"+v.param("agent")+below, v.once(), body, into); err != nil {
		return err
	}
	v.forgetFleet()
	return nil
}

func (v *visit) agentDone(text string) error { return v.done(agentPath(v.param("agent")), text) }

// reasonOf is the body of a suspension.
func (v *visit) reasonOf() map[string]any {
	body := map[string]any{}
	if reason := v.form("reason"); reason != "" {
		body["reason"] = reason
	}
	return body
}

func suspendAgent(v *visit) error {
	if err := v.changeAgent(fasthttp.MethodPost, "/suspend", v.reasonOf(), nil); err != nil {
		return err
	}
	return v.agentDone("The agent is suspended.")
}

func resumeAgent(v *visit) error {
	if err := v.changeAgent(fasthttp.MethodPost, "/resume", map[string]any{}, nil); err != nil {
		return err
	}
	return v.agentDone("The agent is resumed.")
}

func revokeAgent(v *visit) error {
	if err := v.confirmed("revoke"); err != nil {
		return err
	}
	if err := v.changeAgent(fasthttp.MethodPost, "/revoke", nil, nil); err != nil {
		return err
	}
	return v.agentDone("The agent is revoked.")
}

func rotateSecret(v *visit) error {
	if err := v.confirmed("rotate"); err != nil {
		return err
	}
	var rotated client.RotatedSecret
	body := map[string]any{}
	if err := v.changeAgent(fasthttp.MethodPost, "/secret/rotate", body, &rotated); err != nil {
		return err
	}
	return v.reveal(agentPath(v.param("agent")), "The agent has a new secret. The one before is not valid any more.", "Secret", string(rotated.Secret))
}

func revokeFamily(v *visit) error {
	if err := v.changeAgent(fasthttp.MethodDelete, "/families/"+v.param("family"), nil, nil); err != nil {
		return err
	}
	return v.agentDone("The token family is revoked, with its access tokens.")
}

// limitAgent sets the agent's limits. An empty field removes one.
func limitAgent(v *visit) error {
	limits := map[string]any{}
	for field, read := range map[string]func(string) (any, error){
		"max_value_usd_per_day": readAmount, "max_actions_per_minute": readCount, "max_open_sessions": readCount,
	} {
		value, err := read(v.form(field))
		if err != nil {
			return err
		}
		limits[field] = value
	}
	if err := v.changeAgent(fasthttp.MethodPatch, "", map[string]any{"limits": limits}, nil); err != nil {
		return err
	}
	return v.agentDone("The limits are set.")
}
