package console

import (
	"strings"

	"github.com/valyala/fasthttp"
)

// call is a change that one call of the API makes.
type call struct {
	method, path string // ids of the page's own path stand in it by their names
	body         fields // nil for none
	to           string // the page that it leads to, maybe that of what it made; "" for the one that asked for it
	text         string // what that page says
}

// handle makes the change.
func (c call) handle(v *visit) error {
	to, _, err := c.send(v)
	if err != nil {
		return err
	}
	return v.done(to, c.text)
}

// reveal makes the change, and shows the secret that it made once.
func (c call) reveal(v *visit) error {
	to, secret, err := c.send(v)
	if err != nil {
		return err
	}
	return v.reveal(to, c.text, "Secret", secret)
}

func (c call) send(v *visit) (to, secret string, err error) {
	body, err := c.body.given(v)
	if err != nil {
		return "", "", err
	}
	var made struct{ ID, Secret string }
	err = v.send(c.method, c.path, body, &made)
	if err != nil && !(c.method == fasthttp.MethodDelete && isNotFound(err)) { // it is gone
		return "", "", err
	}
	if c.to == "" {
		return v.back(), "", nil
	}
	return strings.NewReplacer("{agent}", made.ID, "{session}", made.ID, "{webhook}", made.ID).Replace(v.at(c.to)), made.Secret, nil
}

// send sends a change to the API, and has the next page read the agents anew if it is one of agents.
func (v *visit) send(method, path string, body map[string]any, into any) error {
	if err := v.api.change(method, v.at(path), v.once(), body, into); err != nil {
		return err
	}
	if strings.HasPrefix(path, "/v1/agents") {
		v.console.fleets.age(v.who.Organization)
	}
	return nil
}

// at returns a path with the ids of the visit's own in place of their names.
func (v *visit) at(path string) string {
	for name, id := range v.params {
		path = strings.ReplaceAll(path, "{"+name+"}", id)
	}
	return path
}
